"""3/11/2026, 14:05; 1 284,5 (the space is narrow and does not break, as the Real Academia asks)."""

from typing import Final

DATE_FORMAT: Final = "d/m/Y"
TIME_FORMAT: Final = "H:i"
DATETIME_FORMAT: Final = "d/m/Y, H:i"
YEAR_MONTH_FORMAT: Final = r"F \d\e Y"
MONTH_DAY_FORMAT: Final = "d/m"
SHORT_DATE_FORMAT: Final = DATE_FORMAT
SHORT_DATETIME_FORMAT: Final = DATETIME_FORMAT
FIRST_DAY_OF_WEEK: Final = 1
DECIMAL_SEPARATOR: Final = ","
THOUSAND_SEPARATOR: Final = "\u202f"
NUMBER_GROUPING: Final = 3
# Browsers' own fields for dates give and take the first form in every language.
DATE_INPUT_FORMATS: Final = ["%Y-%m-%d", "%d/%m/%Y"]
DATETIME_INPUT_FORMATS: Final = ["%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M", "%Y-%m-%d", "%d/%m/%Y %H:%M"]
