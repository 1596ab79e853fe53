"""JSON that grows item by item on disk, so that a list of any length takes the memory of one item."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def as_json(value: Any) -> str:
    """In one line, text of any script as it is."""
    return json.dumps(value, ensure_ascii=False)


class JsonList:
    """The items of a list in ``path``, between ``head`` and ``tail``."""

    def __init__(self, path: Path, head: str = "[\n", tail: str = "\n]\n") -> None:
        self.path = path
        self._file = path.open("w", encoding="utf-8")
        self._file.write(head)
        self._tail = tail
        self.count = 0

    def add(self, item: Any) -> None:
        self._file.write((",\n" if self.count else "") + as_json(item))
        self.count += 1

    def close(self) -> None:
        self._file.write(self._tail)
        self._file.close()


class JsonLists:
    """One object in ``path``: the entries of ``head``, then a list under each of ``names``, all growing at a time."""

    def __init__(self, path: Path, head: Mapping[str, Any], names: tuple[str, ...]) -> None:
        self._path = path
        self._head = head
        self.lists = {name: JsonList(path.with_name(f"{path.name}.{name}"), tail="\n]") for name in names}

    def close(self) -> None:
        with self._path.open("wb") as file:
            start = "".join(f"{as_json(key)}: {as_json(value)},\n" for key, value in self._head.items())
            file.write(f"{{\n{start}".encode())
            for number, (name, items) in enumerate(self.lists.items()):
                items.close()
                file.write((",\n" if number else "").encode() + f"{as_json(name)}: ".encode())
                with items.path.open("rb") as part:
                    shutil.copyfileobj(part, file)
                items.path.unlink()
            file.write(b"\n}\n")
