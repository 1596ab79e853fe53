"""Pictures at URLs, against a server on this machine: order, codes, pauses, bounds."""

import os
import re
import time
from email.utils import formatdate

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import photon.data.fetched
from photon.data.download import FetchPolicy
from photon.data.fetched import Fetched
from photon.data.parquet import ParquetSource
from photon.data.patience import patiently, retry_after

from .fake_web import Web, serve_web
from .pictures import picture


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch):
    monkeypatch.setitem(os.environ, "NO_PROXY", "127.0.0.1")


def fetched(tmp_path, cells, **policy):
    pq.write_table(pa.table({"image": pa.array(cells, pa.string())}), tmp_path / "a.parquet", row_group_size=7)
    return Fetched(ParquetSource([str(tmp_path / "a.parquet")], image="image"), FetchPolicy(**policy))


def codes(rows):
    return [row.failure.code if row.failure else None for row in rows]


def test_rows_keep_their_order_and_downloads_overlap(tmp_path):
    pages = {f"/{n}.png": picture(n) for n in range(40)}
    with serve_web(Web(pages, slow=0.05)) as web:
        source = fetched(tmp_path, [f"{web.url}/{n}.png" for n in range(40)], parallel=4)
        rows = list(source.rows())
        assert [row.image.source for row in rows] == list(pages.values())
        assert [row.index for row in rows] == list(range(40))
        assert 2 <= web.most_at_once <= 4
        assert [row.image.source for row in source.rows(3, start=30)] == [picture(n) for n in (30, 31, 32)]
    assert (source.count(), list(source.files)) == (40, [f"{tmp_path}/a.parquet"])
    assert source.schema.names == ["image"]


def test_pictures_that_need_no_fetching(tmp_path):
    cells = [
        {"bytes": picture(1), "path": "http://127.0.0.1:9/never.png"},
        {"bytes": None, "path": "b.png"},
        {"bytes": None, "path": None},
    ]
    pq.write_table(pa.table({"image": cells}), tmp_path / "a.parquet")
    source = Fetched(ParquetSource([str(tmp_path / "a.parquet")], image="image"), FetchPolicy())
    assert [row.image and row.image.source for row in source.rows()] == [picture(1), f"{tmp_path}/b.png", None]


def test_what_cannot_be_had_is_a_code(tmp_path):
    pages = {"/a.png": picture(1), "/b c é.png": picture(2), "/large.png": bytes(5000), "/half.png": bytes(900)}
    first = {"/secret.png": [(403, {})], "/moved.png": [(302, {"Location": "/a.png"})]}
    first["/out.png"] = [(302, {"Location": "ftp://127.0.0.1/a.png"})]
    first["/file.png"] = [(302, {"Location": "file:///etc/hostname"})]
    with serve_web(Web({**pages, "/empty.png": b""}, first, cut=frozenset(["/half.png"]))) as web:
        names = ["a", "b c é", "none", "large", "secret", "moved", "empty", "half", "out", "file"]
        cells = [f"{web.url}/{name}.png" for name in names]
        cells += ["http://127.0.0.1:1/a.png", "http:///a.png", "http://[::1/a.png", "s3://bucket/a.png", None]
        rows = list(fetched(tmp_path, cells, retries=0, max_bytes=4096).rows())
    want = [None, None, "IMAGE_MISSING", "IMAGE_TOO_LARGE", "IMAGE_UNREACHABLE", None, None, *["IMAGE_UNREACHABLE"] * 4]
    assert codes(rows) == [*want, *["IMAGE_MISSING"] * 3, None]
    assert [rows[n].image.source for n in (0, 1, 5, 6)] == [picture(1), picture(2), picture(1), b""]
    told = [row.failure.message if row.failure else "" for row in rows]
    assert told[2] == f"{web.url}/none.png: HTTP 404 Not Found"
    assert told[3] == "5000 bytes or more, which is more than input.urls.max_bytes = 4096"
    assert told[4] == f"{web.url}/secret.png: HTTP 403 Forbidden"
    assert "450 of 900 bytes came" in told[7]
    assert "Connection refused" in told[10]
    assert "not an http or https URL: s3://bucket/a.png" in told[13]
    assert rows[14].image is None


@pytest.mark.slow
@pytest.mark.parametrize("form", ["seconds", "date"])
def test_a_busy_server_is_left_alone_for_as_long_as_it_asks(form, tmp_path):
    with serve_web(Web({f"/{n}.png": picture(n) for n in range(6)})) as web:
        pause = "1" if form == "seconds" else formatdate(time.time() + 2, usegmt=True)  # to the second: 1 to 2
        web.first["/0.png"] = [(429, {"Retry-After": pause}), (503, {})]
        web.first["/3.png"] = [(500, {}), (0, {})]
        rows = list(fetched(tmp_path, [f"{web.url}/{n}.png" for n in range(6)], parallel=1).rows())
    assert [row.image.source for row in rows] == [picture(n) for n in range(6)]
    assert [path for _, path in web.asked] == [f"/{n}.png" for n in (0, 0, 0, 1, 2, 3, 3, 3, 4, 5)]
    assert web.asked[1][0] - web.asked[0][0] >= 0.95


def test_one_busy_answer_holds_up_all_downloads_from_that_host(tmp_path):
    with serve_web(Web({f"/{n}.png": picture(n) for n in range(15)}, slow=0.2)) as web:
        web.first["/0.png"] = [(429, {"Retry-After": "1"})]  # which is told 0.2 s after it was asked
        rows = list(fetched(tmp_path, [f"{web.url}/{n}.png" for n in range(15)], parallel=2).rows())
    assert codes(rows) == [None] * 15
    (busy, _), *others = [(when, path) for when, path in web.asked if path == "/0.png"]
    assert len(others) == 1
    late = [when - busy for when, _ in web.asked if when > busy + 0.5]
    assert min(late) > 1.1, "but for what was on its way, or had passed the door when the answer came"
    assert len(late) >= 10, "who does not wait has asked for most of them by then"


def test_patience_ends(tmp_path):
    with serve_web(Web({"/a.png": picture(1)})) as web:
        web.first = {"/a.png": [(503, {"Retry-After": "0"})] * 3, "/b.png": [(429, {"Retry-After": "3600"})]}
        rows = list(fetched(tmp_path, [f"{web.url}/a.png", f"{web.url}/b.png"], retries=2).rows())
    assert codes(rows) == ["IMAGE_UNREACHABLE"] * 2
    assert rows[0].failure.message.endswith("HTTP 503 Service Unavailable, at the last of 3 attempts")
    assert "asks to wait 3600 s, more than input.urls.max_wait" in rows[1].failure.message
    assert len(web.asked) == 4


def test_a_server_that_does_not_answer(tmp_path):
    with serve_web(Web({"/a.png": picture(1)}, slow=2.0)) as web:
        began = time.monotonic()
        (row,) = fetched(tmp_path, [f"{web.url}/a.png"], retries=0, timeout=0.2).rows()
        assert time.monotonic() - began < 1.5
    assert re.search("IMAGE_UNREACHABLE .*timed out", f"{row.failure.code} {row.failure.message}")


def test_a_reader_that_leaves_stops_the_downloads(tmp_path):
    with serve_web(Web({f"/{n}.png": picture(n) for n in range(200)}, slow=0.01)) as web:
        rows = fetched(tmp_path, [f"{web.url}/{n}.png" for n in range(200)], parallel=2).rows()
        next(rows)
        rows.close()
        time.sleep(0.3)
        asked = len(web.asked)
        time.sleep(0.2)
        assert len(web.asked) == asked <= 10


def test_what_waits_is_bounded_by_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr(photon.data.fetched, "_HELD_BYTES", 40_000)
    pages = {f"/{n}.png": bytes([n]) * 10_000 for n in range(60)}
    with serve_web(Web(pages)) as web:
        source = fetched(tmp_path, [f"{web.url}/{n}.png" for n in range(60)], parallel=8)
        for row in source.rows():
            assert row.image.source == bytes([row.index]) * 10_000
            time.sleep(0.02)  # a slow engine
            ahead = len(web.asked) - row.index
            assert ahead <= 5 + 8, "five wait for their turn, eight may be on their way"


def test_retry_after():
    assert [retry_after(value) for value in (None, "", "soon", "-1", "0", " 17 ")] == [None, None, None, None, 0, 17]
    assert retry_after("Wed, 21 Oct 2015 07:28:00 GMT") == 0
    assert 58 <= retry_after(formatdate(time.time() + 60, usegmt=True)) <= 60


def test_patiently(monkeypatch):
    waited = []
    monkeypatch.setattr(time, "sleep", waited.append)

    class Answer:
        def __init__(self, status_code, headers):
            self.status_code, self.headers = status_code, headers

    def ask(*answers):
        left = list(answers)

        def once():
            if not left:
                return "there"
            try:
                error = OSError("http")
                error.response = left.pop(0)
                raise error
            except OSError as inner:
                raise ConnectionError("hidden") from inner

        return once

    assert patiently(ask(Answer(429, {"Retry-After": "7"}), Answer(503, {"Retry-After": "2"})), "a") == "there"
    assert waited == [7, 2]
    assert patiently(ask(Answer(500, {}), Answer(500, {})), "a") == "there"
    assert 0.5 <= waited[2] <= 1 <= waited[3] <= 2
    for wrong in ([Answer(404, {})], [Answer(429, {"Retry-After": "121"})], [Answer(503, {"Retry-After": "0"})] * 6):
        before = len(waited)
        with pytest.raises(ConnectionError, match="hidden"):
            patiently(ask(*wrong), "a")
        assert len(waited) - before == len(wrong) - 1
