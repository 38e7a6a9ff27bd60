"""The site's addresses without those of extras."""

from portal import urls
from portal.extras import apps_in_use

_OF_EXTRAS = [pattern for app in apps_in_use() if app.is_extra for pattern in app.urls()]
handler500 = urls.handler500
urlpatterns = [pattern for pattern in urls.urlpatterns if pattern not in _OF_EXTRAS]
