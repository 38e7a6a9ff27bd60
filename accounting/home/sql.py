"""SQL for the home page. It only reads, and locks nothing."""

from typing import Final

# One pass over the range for all three breakdowns: by day, by day and project, by day and computer.
BREAKDOWNS: Final = """
    SELECT GROUPING(project_id, host_id), day, project_id, host_id,
           sum(cpu_ec + gpu_ec)::bigint, sum(cpu_time)::bigint, sum(gpu_time)::bigint,
           sum(njobs_success)::bigint, sum(njobs_error)::bigint
      FROM accounting_day
     WHERE user_id = %s AND day BETWEEN %s AND %s
     GROUP BY GROUPING SETS ((day), (day, project_id), (day, host_id))
"""
# Values of GROUPING(project_id, host_id): a bit is set for each column that the row sums over.
BY_DAY: Final = 3
BY_PROJECT: Final = 1
BY_HOST: Final = 2
