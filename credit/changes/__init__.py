"""Changes of settings that change credit: their previews, resetting a version's statistics, and what a change did."""


def add_to_steps() -> None:
    """Tell the site's pages of changes what is known of these."""
    from credit.changes import effects, events, forecast, reset
    from credit.models import App, AppVersion
    from credit.statistics.markers import event_sources
    from portal.audit.steps import forecasts, operations, sections

    forecasts[App] = forecast.OF_APPS
    forecasts[AppVersion] = forecast.OF_VERSIONS
    operations[reset.OPERATION] = reset.operation
    sections.append(effects.section)
    event_sources.append(events.events)
