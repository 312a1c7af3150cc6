"""What the worker knows: the workspace folders with their analyses, and the open documents.

Everything here runs in the worker's thread, apart from the constructor.

A document belongs to the innermost folder that it lies in; all documents that lie in none share one analysis. Folders
come and go: the documents move with them. Of two documents with one path the later counts: it is the file that the
other, which was never saved, has become.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from nnx_lint.ide.analysis import Analysis
from nnx_lint.ide.configuration import is_configuration
from nnx_lint.ide.settings import Settings
from nnx_lsp.documents import path_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from nnx_lint.diagnostics import Diagnostic
    from nnx_lsp.documents import Document


class Session:
    """Folders and documents; ``pause`` is handed to every analysis."""

    def __init__(self, pause: Callable[[], None]) -> None:
        self._pause = pause
        self._settings: dict[str | None, Settings] = {}
        self._analyses: dict[str | None, Analysis] = {}
        self._folders: dict[str, str] = {}
        self.documents: dict[str, Document] = {}
        self._by_cell: dict[str, Document] = {}
        self._configurations: dict[str, Document] = {}
        self.stale: dict[str, None] = {}
        """The paths of the open documents whose diagnostics may be others than those that the client has."""
        self.rescanned: dict[str, None] = {}
        """The same of files that are not open."""

    # -- folders

    @property
    def folders(self) -> dict[str, str]:
        """The paths of the workspace folders by URI."""
        return self._folders

    def set_folders(self, folders: dict[str, str]) -> None:
        """Say which workspace folders there are: paths by URI."""
        self._folders = folders
        for folder in [each for each in self._analyses if each is not None and each not in folders.values()]:
            del self._analyses[folder]
        for document in self.documents.values():
            analysis = self.analysis(document.path)
            if document.path not in analysis.edited:
                analysis.edit(document.source)
                for other in self._analyses.values():
                    if other is not analysis and document.path in other.edited:
                        other.close(document.path)
                self.stale[document.path] = None

    def configure(self, settings: dict[str | None, Settings]) -> None:
        """Take the settings of folders by path; those of ``None`` hold for all other files."""
        self._settings = settings
        for folder, analysis in self._analyses.items():
            if analysis.settings != self.settings(folder):
                self._configure(folder, analysis)

    def reload(self) -> None:
        """Read all configuration files again."""
        for folder, analysis in self._analyses.items():
            self._configure(folder, analysis)

    def _configure(self, folder: str | None, analysis: Analysis) -> None:
        analysis.configure(self.settings(folder))
        self.stale.update(dict.fromkeys(self.documents))

    def settings(self, folder: str | None) -> Settings:
        """The editor's settings for a folder."""
        return self._settings.get(folder) or self._settings.get(None) or Settings()

    def analysis(self, path: str) -> Analysis:
        """The analysis that a file belongs to."""
        around = [folder for folder in self._folders.values() if path.startswith(folder.rstrip(os.sep) + os.sep)]
        return self.of_folder(max(around, key=len, default=None))

    def of_folder(self, folder: str | None) -> Analysis:
        """The analysis of a workspace folder, or of all files that lie in none."""
        if folder not in self._analyses:
            self._analyses[folder] = analysis = Analysis(folder, self.settings(folder))
            analysis.pause = self._pause
        return self._analyses[folder]

    @property
    def analyses(self) -> Iterable[Analysis]:
        """All analyses."""
        return self._analyses.values()

    def problems(self) -> Iterator[str]:
        """What is wrong with settings and configuration files, each time that it is read."""
        for analysis in self._analyses.values():
            yield from (*analysis.settings.problems, *analysis.problems)
        if not self._analyses:
            yield from self.settings(None).problems

    # -- documents

    def edit(self, document: Document) -> None:
        """Take a document that was opened or changed."""
        self.forget(document.uri)
        if is_configuration(document.path):
            self._configurations[document.uri] = document
            return
        before = self.documents.get(document.path)
        if before is not None and before.uri != document.uri:
            self.forget(before.uri)
        self.documents[document.path] = document
        self._by_cell.update(dict.fromkeys((cell.uri for cell in document.cells), document))
        analysis = self.analysis(document.path)
        analysis.edit(document.source)
        self.stale.pop(document.path, None)
        others = [path for path in self.documents if path != document.path and self.analysis(path) is analysis]
        self.stale.update(dict.fromkeys((document.path, *others)))

    def forget(self, uri: str) -> None:
        """Drop what is known of the URIs of a document."""
        self._configurations.pop(uri, None)
        for known in [cell for cell, document in self._by_cell.items() if document.uri == uri]:
            del self._by_cell[known]

    def close(self, uri: str) -> None:
        """Take leave of a document."""
        self.forget(uri)
        path = path_of(uri)
        document = self.documents.get(path)
        if document is not None and document.uri == uri:
            del self.documents[path]
            self.analysis(path).close(path)
            self.stale.pop(path, None)
            self.stale.update(dict.fromkeys(self.documents))

    def document(self, uri: str) -> Document | None:
        """The open document that a URI, of a file or of a cell, belongs to."""
        return self._by_cell.get(uri)

    def configuration(self, uri: str) -> Document | None:
        """The open configuration file of this URI; its text counts when it is saved."""
        return self._configurations.get(uri)

    def findings(self, document: Document) -> list[Diagnostic]:
        """The findings in a document."""
        return self.analysis(document.path).findings(document.path)
