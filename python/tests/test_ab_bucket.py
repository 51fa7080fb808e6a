"""Records in a bucket, read from a local server that speaks S3's reading half."""

import re
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import parse_qs, urlsplit

import pytest
from ab_records import write
from typer.testing import CliRunner

from headstart.lab import app

BUCKET = "records"


def handler(folder: Path) -> type[BaseHTTPRequestHandler]:
    """Lists (ListObjectsV2) and gives (GetObject, with ranges) what is in `folder`."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def do_HEAD(self) -> None:
            self._object(with_body=False)

        def do_GET(self) -> None:
            query = parse_qs(urlsplit(self.path).query)
            if "list-type" in query:
                self._list(query.get("prefix", [""])[0])
            else:
                self._object(with_body=True)

        def _list(self, prefix: str) -> None:
            names = sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*.*"))
            entries = "".join(
                f"<Contents><Key>{name}</Key><Size>{(folder / name).stat().st_size}</Size>"
                "<LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>x</ETag></Contents>"
                for name in names
                if name.startswith(prefix)
            )
            self._answer(
                200,
                f"<ListBucketResult><Name>{BUCKET}</Name><IsTruncated>false</IsTruncated>"
                f"{entries}</ListBucketResult>".encode(),
            )

        def _object(self, *, with_body: bool) -> None:
            file = folder / urlsplit(self.path).path.removeprefix(f"/{BUCKET}/")
            if not file.is_file():
                self._answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
                return
            whole = file.read_bytes()
            asked = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
            if not asked:
                self._answer(200, whole, with_body=with_body)
                return
            first, last = asked.groups()
            begin = int(first) if first else max(len(whole) - int(last), 0)
            end = min(int(last) + 1 if first and last else len(whole), len(whole))
            told = {"Content-Range": f"bytes {begin}-{end - 1}/{len(whole)}"}
            self._answer(206, whole[begin:end], told, with_body=with_body)

        def _answer(
            self,
            code: int,
            body: bytes,
            more: dict[str, str] | None = None,
            *,
            with_body: bool = True,
        ) -> None:
            self.send_response(code)
            heads = {"ETag": '"x"', "Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT"}
            for name, value in (heads | (more or {})).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if with_body:
                self.wfile.write(body)

    return Handler


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that is served as a bucket; the environment leads there."""
    folder = tmp_path / BUCKET
    folder.mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler(folder))
    Thread(target=server.serve_forever, daemon=True).start()
    environment = {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}",
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "x",
        "AWS_SECRET_ACCESS_KEY": "y",
        "AWS_REGION": "local",
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    yield folder
    server.shutdown()
    server.server_close()


def test_a_folder_of_a_bucket_a_pattern_and_a_file_give_what_the_disk_gives(bucket: Path) -> None:
    (bucket / "web").mkdir()
    for number in (1, 2):
        write(bucket / "web" / f"transfers-a-1-{number}.parquet", transfers=900, seed=number)

    def said(name: str) -> str:
        result = CliRunner().invoke(app, ["ab", name])
        assert result.exit_code == 0, result.output
        return result.stdout[result.stdout.index("THE EXPERIMENT ITSELF") :]

    local = said(str(bucket / "web"))
    assert said(f"s3://{BUCKET}/web") == local
    assert said(f"s3://{BUCKET}/web/*.parquet") == local
    one = "web/transfers-a-1-1.parquet"
    assert said(f"s3://{BUCKET}/{one}") == said(str(bucket / one))


def test_a_bucket_that_does_not_answer_as_it_should_is_named(bucket: Path) -> None:
    result = CliRunner().invoke(app, ["ab", f"s3://{BUCKET}/none.parquet"])
    assert result.exit_code == 2
    assert f"s3://{BUCKET}/none.parquet" in result.stderr
    assert "credentials" in result.stderr
    assert bucket.is_dir()
