"""Operators' pages of the laboratory: everybody's experiments, a new one, and an app's own results."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.cache import patch_vary_headers
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from credit.models import App
from extras.laboratory import own_results
from extras.laboratory import request as requests
from extras.laboratory.charts import version_chart
from extras.laboratory.models import CreditExperiment
from extras.laboratory.reads import download, page_of
from extras.laboratory.views import ask, experiment_form
from portal.admin import SecretLookups
from portal.templatetags.display import count


@admin.register(CreditExperiment)
class CreditExperimentAdmin(SecretLookups):
    """The credit laboratory. An experiment never changes; a changed copy is a new one."""

    list_display = ("title", "owner", "asked_at", "progress_text", "is_shared")
    list_select_related = ("owner",)
    list_before_template = "laboratory/admin_list_links.html"
    search_fields = ("title", "owner__email")

    def get_queryset(self, request: HttpRequest) -> QuerySet[CreditExperiment]:
        rows: QuerySet[CreditExperiment] = super().get_queryset(request).defer("results")
        return rows

    @admin.display(description=_("state"))
    def progress_text(self, experiment: CreditExperiment) -> str:
        if experiment.finished_at is None:
            return f"{experiment.progress:.0%}"
        return gettext("failed") if experiment.failure else gettext("done")

    @admin.display(description=_("shared"), boolean=True)
    def is_shared(self, experiment: CreditExperiment) -> bool:
        return experiment.share_token is not None

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        return [
            path("own-results/", view(self.own_results_view), name="credit_own_results"),
            path("<int:pk>/result.json", view(self.json_view), name="laboratory_creditexperiment_json"),
            *super().get_urls(),
        ]

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: Any = None) -> HttpResponse:
        if not self.has_add_permission(request):
            raise PermissionDenied
        readable = CreditExperiment.objects.all()
        if not self.has_view_permission(request):
            readable = readable.filter(owner_id=request.user.pk)
        form = experiment_form(request, readable, is_operator=True)
        experiment = ask(form, request, is_operator=True)
        if experiment is not None:
            return redirect("admin:laboratory_creditexperiment_change", experiment.pk)
        return self._page(request, "admin_new.html", gettext("New experiment"), form=form)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Show the results or the progress; an experiment is shared here, too."""
        experiment = self._kept(request, object_id)
        if request.method == "POST":
            if not self.has_change_permission(request, experiment):
                raise PermissionDenied
            if "end" in request.POST:
                requests.unshare(experiment)
            elif requests.may_be_shared(experiment):
                requests.share(experiment)
            else:
                messages.warning(
                    request, gettext("A volunteer’s experiment is shared only while the laboratory is public.")
                )
            return redirect("admin:laboratory_creditexperiment_change", experiment.pk)
        part = "_experiment.html" if request.headers.get("HX-Request") else "admin_experiment.html"
        response = self._page(
            request,
            part,
            experiment.title,
            **page_of(experiment, timezone.now()),
            is_operator=True,
            may_add=self.has_add_permission(request),
            may_share=self.has_change_permission(request, experiment)
            and (experiment.share_token is not None or requests.may_be_shared(experiment)),
            delete_url=reverse("admin:laboratory_creditexperiment_delete", args=[experiment.pk])
            if self.has_delete_permission(request, experiment)
            else "",
        )
        patch_vary_headers(response, ["HX-Request"])
        return response

    def json_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        return JsonResponse(download(self._kept(request, str(pk))))

    def _kept(self, request: HttpRequest, object_id: str) -> CreditExperiment:
        """Return the visible experiments: all for those who may view them, their own for those who may only start
        them.
        """
        pk = int(object_id) if object_id.isascii() and object_id.isdigit() else 0
        rows = CreditExperiment.objects.select_related("owner").filter(pk=pk)
        if not self.has_view_permission(request):
            rows = rows.filter(owner_id=request.user.pk)
            if not (self.has_add_permission(request) and rows.exists()):
                raise PermissionDenied
        return get_object_or_404(rows)

    def delete_model(self, request: HttpRequest, obj: CreditExperiment) -> None:
        requests.delete(obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[CreditExperiment]) -> None:
        for experiment in queryset:
            requests.delete(experiment)

    def own_results_view(self, request: HttpRequest) -> HttpResponse:
        """Show the goals, measured on an app's last workunits."""
        if not request.user.has_perm("credit.view_app"):
            raise PermissionDenied
        return require_safe(self._own_results)(request)

    def _own_results(self, request: HttpRequest) -> HttpResponse:
        apps = App.objects.order_by("name")
        name, number = request.GET.get("app", ""), request.GET.get("last", "")
        app = next((candidate for candidate in apps if candidate.name == name), None)
        last = int(number) if number in map(str, own_results.NUMBERS) else own_results.NUMBERS[1]
        problems = []
        if name and app is None:
            problems.append(gettext("“%(text)s” is not an app of this project.") % {"text": name[:20]})
        if number and number != str(last):
            problems.append(
                gettext(
                    "“%(text)s” is not a number of workunits to choose from. The most recent %(last)s are measured."
                )
                % {"text": number[:20], "last": count(last)}
            )
        measured = None if app is None else own_results.measure_app(app, last)
        return self._page(
            request,
            "admin_own_results.html",
            gettext("Goals, measured on an app’s own results"),
            apps=apps,
            app=app,
            last=last,
            numbers=own_results.NUMBERS,
            problems=problems,
            measured=measured,
            chart=None if measured is None else version_chart(measured.versions),
        )

    def _page(self, request: HttpRequest, template: str, title: str, **context: Any) -> TemplateResponse:
        base = {**self.admin_site.each_context(request), "opts": self.opts, "title": title}
        status = 422 if "form" in context and context["form"].is_bound else 200
        return TemplateResponse(request, f"laboratory/{template}", {**base, **context}, status=status)
