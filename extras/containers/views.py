"""Pages of container images: run one on many inputs, the list of them, and the variants of one."""

from __future__ import annotations

from itertools import groupby

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from extras.containers.forms import RunForm, VariantForm
from extras.containers.images import ImageError, changeable, container_apps, make, put_variant
from extras.containers.images import remove_variant as remove
from extras.containers.models import Image
from portal.languages.sentences import sentence
from scheduler.submission import drafts
from scheduler.submission.views import submitter

SHOWN_IMAGES = 500


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def run_image(request: HttpRequest) -> HttpResponse:
    """Choose an image and its inputs. Nothing is submitted before the preview."""
    user = submitter(request)
    initial = {"image": request.GET.get("image", "")[:20]}
    form = RunForm(request.POST or None, request.FILES or None, initial=initial)
    if request.method == "POST" and form.is_valid():
        given = form.cleaned_data
        try:
            image = given["image"] or make(user, given["app"], given["image_name"], form.variant())
            draft = drafts.keep(
                user,
                image.app,
                form.upload,
                is_archive=form.is_archive,
                name=given["name"] or image.name,
                open_name=given["open_name"],
                defaults={**form.defaults, "program_files": image.program_files()},
                now=timezone.now(),
            )
        except ImageError as error:
            form.add_error(None, sentence(error.message))
        except drafts.UploadRefused as refused:
            form.add_faults(refused.faults)
            if not given["image"]:
                # Its name is free again for the corrected form.
                remove(image, plan_class="", cpu="")
        else:
            return redirect("batch_draft", draft.pk)
    context = {"form": form, "has_apps": container_apps().exists()}
    return render(request, "containers/run.html", context, status=422 if form.errors else 200)


@require_safe
@login_required
def images(request: HttpRequest) -> HttpResponse:
    """Which images are there?"""
    submitter(request)
    rows = Image.objects.select_related("app", "owner").prefetch_related("files")[:SHOWN_IMAGES]
    return render(request, "containers/images.html", {"images": rows})


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def image(request: HttpRequest, pk: int) -> HttpResponse:
    """What is in this image, and for which computers? Its owner can give it a variant."""
    user = submitter(request)
    stored = get_object_or_404(Image.objects.select_related("app"), pk=pk)
    may_change = changeable(user).filter(pk=pk).exists()
    if request.method == "POST" and not may_change:
        return redirect("image", pk)
    form = VariantForm(stored, request.POST or None, request.FILES or None)
    if request.method == "POST" and form.is_valid():
        try:
            put_variant(stored, form.variant())
        except ImageError as error:
            form.add_error(None, sentence(error.message))
        else:
            messages.success(request, gettext("The variant is stored. Jobs that you submit from now on have it."))
            return redirect("image", pk)
    files = stored.files.select_related("file").order_by("plan_class", "cpu", "open_name")
    variants = [list(group) for _, group in groupby(files, lambda file: (file.plan_class, file.cpu))]
    context = {"image": stored, "variants": variants, "form": form, "may_change": may_change}
    return render(request, "containers/image.html", context)


@require_POST
@login_required
def remove_variant(request: HttpRequest, pk: int) -> HttpResponse:
    """Delete a variant, and the image with its last one. Submitted jobs keep their files."""
    own = get_object_or_404(changeable(submitter(request)), pk=pk)
    remove(own, request.POST.get("plan_class", "")[:64], request.POST.get("cpu", "")[:8])
    if not Image.objects.filter(pk=pk).exists():
        return redirect("images")
    return redirect("image", pk)
