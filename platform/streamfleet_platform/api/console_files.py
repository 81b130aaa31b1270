"""The console's files at `/` and `/console/`: static, the same for everybody, and without a token, because they hold nothing.

The page asks for a token and keeps it for its tab; it calls the API like everybody else. Its policy lets it load what comes from
here and nothing else.
"""

from __future__ import annotations

from pathlib import Path

from fastapi import FastAPI
from starlette.responses import RedirectResponse, Response
from starlette.staticfiles import StaticFiles

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; "
    "connect-src 'self'; frame-src blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def console_directory() -> Path | None:
    """Beside this module in an installed package, in dashboards/ of a checkout."""
    here = Path(__file__).resolve()
    for directory in (here.parent / "console", here.parents[3] / "dashboards" / "console"):
        if (directory / "index.html").is_file():
            return directory
    return None


class _ConsoleFiles(StaticFiles):
    """Static files under the console's policy."""

    def file_response(self, *args: object, **named: object) -> Response:
        response = super().file_response(*args, **named)  # type: ignore[arg-type]
        response.headers["Content-Security-Policy"] = POLICY
        return response


def mount(app: FastAPI, directory: Path) -> None:
    def page() -> RedirectResponse:
        # a browser takes the fragment, with the token of a link, along
        return RedirectResponse("/console/")

    app.add_api_route("/", page, methods=["GET", "HEAD"], include_in_schema=False)
    app.mount("/console", _ConsoleFiles(directory=directory, html=True, follow_symlink=False))
