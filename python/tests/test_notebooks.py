"""What arrays, groups, rows and schemas look like in notebooks and terminals, and that this takes little reading."""

import base64
import html.parser
import io
import re

import numpy as np
import pytest
from conftest import tiledb, write_dense

import tilefs
from tilefs import _display, _pictures

Image = pytest.importorskip("PIL.Image")

EMPTY = {"br", "img", "line", "polygon"}


class Page(html.parser.HTMLParser):
    """Checks that each element ends, and collects the text."""

    def __init__(self, page):
        super().__init__()
        self.open, self.tags, self.text = [], [], []
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)

    def picture(self):
        (source,) = (attributes["src"] for tag, attributes in self.tags if tag == "img")
        return np.asarray(Image.open(io.BytesIO(base64.b64decode(source.split(",")[1]))))


def page_of(shown):
    page = Page(shown._repr_html_())
    return page, " ".join(page.text)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Returns a sparse array of two fragments that interleave, whose names and texts are HTML."""
    path = str(tmp_path_factory.mktemp("notebooks") / "<b>table")
    dim = tiledb.Dim("id & co", domain=(0, 99_999), tile=1000, dtype=np.int64)
    attrs = [tiledb.Attr("<script>", dtype=str, var=True), tiledb.Attr("n", dtype=np.int32, nullable=True)]
    tiledb.Array.create(path, tiledb.ArraySchema(tiledb.Domain(dim), attrs, sparse=True, capacity=100))
    for first in (0, 1):
        with tiledb.open(path, "w") as array:
            ids = np.arange(first, 20_000, 2)
            array[ids] = {"<script>": np.array([f"<i>{one}" for one in ids], dtype=object), "n": ids.astype("i4")}
            array.meta["<key>"] = "<value>"
    return path


def test_a_page_tells_shape_tiles_filters_and_sizes(demo):
    array = tilefs.open(demo)
    page, text = page_of(array)
    for part in ("100 × 200 cells", "2 fragments", "25.2 KiB stored", "156 KiB decoded", "tiles of 32", "BYTESHUFFLE, ZSTD", "2024-01-02"):
        assert part in text, part
    # Tiles of 32 end 3 times in 100 cells, and 6 times in 200.
    assert len([tag for tag, _ in page.tags if tag == "line"]) == 3 + 6
    for shown in (array["temp"], array.schema):
        assert "BYTESHUFFLE" in page_of(shown)[1] and "BYTESHUFFLE" in repr(shown)
    assert "y: 100, x: 200" in repr(array) and "25.2 KiB stored" in repr(array)


def test_names_and_values_are_no_markup(table):
    array = tilefs.open(table)
    for shown in (array, array.read(), array.schema, array.attr(0)):
        page, text = page_of(shown)
        assert not {"script", "b", "i"} & {tag for tag, _ in page.tags}
    assert "<i>0" in page_of(array)[1] and "<key>" in page_of(array)[1] and "id & co" in page_of(array)[1]


def test_colours_are_those_of_the_page_or_mix_with_them(table, demo):
    """Pages are light or dark, and each program that shows them names its colours otherwise."""
    for shown in (tilefs.open(demo), tilefs.open(demo)["temp"], tilefs.open(demo).schema, tilefs.open(table), tilefs.open(table).read()):
        page = shown._repr_html_()
        found = re.findall(r"(?:color|background|fill|stroke|border(?:-[a-z]+)?):([^;}\"]+)", page)
        mixed = [float(one) for one in re.findall(r"rgba\([0-9, ]+,([0-9.]+)\)", " ".join(found))]
        assert mixed and max(mixed) < 1 and "var(" not in page
        others = {re.sub(r"rgba\(.*?\)", "", one).split("!")[0].strip() for one in found}
        assert others <= {"", "inherit", "none", "currentColor", "1px solid", "collapse"}, others


def test_columns_of_numbers_end_at_the_right(table):
    rows = tilefs.open(table).read()
    page, _ = page_of(rows)
    cells = [(tag, attributes.get("class")) for tag, attributes in page.tags if tag in ("th", "td")]
    assert cells[:6] == [("th", "tilefs-number"), ("th", None), ("th", "tilefs-number"), ("td", "tilefs-number"), ("td", None), ("td", "tilefs-number")]
    head, first, *_ = repr(rows).splitlines()[1:]
    assert head.index("id & co") + len("id & co") == first.index("0") + 1 and head.endswith(" n") and first.endswith(" 0")


def test_names_and_texts_move_no_cursor_and_turn_no_text(tmp_path):
    path, name = str(tmp_path / "array"), "a\x1b[31m\u202eb"
    attrs = [tiledb.Attr(name, dtype=np.int32), tiledb.Attr("", dtype=np.int32), tiledb.Attr("text", dtype=str, var=True)]
    dim = tiledb.Dim("id", domain=(0, 9), tile=10, dtype=np.int64)
    tiledb.Array.create(path, tiledb.ArraySchema(tiledb.Domain(dim), attrs, sparse=True))
    with tiledb.open(path, "w") as array:
        array[[1]] = {name: np.int32([2]), "": np.int32([3]), "text": np.array(["one\ntwo" + 90 * "x"], dtype=object)}
    array = tilefs.open(path)
    for shown in (array, array.schema, array.read(), array.attr(0)):
        for text in (repr(shown), page_of(shown)[1]):
            assert "\x1b" not in text and "\u202e" not in text and "\\x1b[31m" in text
    # An attribute without a name is shown, too.
    assert "(anonymous)" in repr(array) and "(anonymous)" in page_of(array)[1] and "first rows" in page_of(array)[1]
    assert "one\\ntwoxxx" in repr(array.read()) and "xxx…" in repr(array.read())


def test_lines_of_rows_are_not_wider_than_a_terminal(tmp_path):
    path = str(tmp_path / "array")
    attrs = [tiledb.Attr(f"measurement {number}", dtype=np.float64) for number in range(40)]
    dim = tiledb.Dim("id", domain=(0, 9), tile=10, dtype=np.int64)
    tiledb.Array.create(path, tiledb.ArraySchema(tiledb.Domain(dim), attrs, sparse=True))
    with tiledb.open(path, "w") as array:
        array[[1]] = {attr.name: np.float64([1 / 3]) for attr in attrs}
    _, head, first, more = repr(tilefs.open(path).read()).splitlines()
    assert 90 < len(head) <= 122 and len(first) == len(head) and more == f"  and {40 - head.count('measurement')} columns more"


def test_times_are_shown_without_what_they_do_not_tell(tmp_path):
    path = str(tmp_path / "array")
    ends = (np.datetime64("2020-01-01", "ns"), np.datetime64("2030-01-01", "ns"))
    dim = tiledb.Dim("time", domain=ends, tile=np.timedelta64(30, "D").astype("m8[ns]"), dtype="datetime64[ns]")
    attrs = [tiledb.Attr("day", dtype="datetime64[s]"), tiledb.Attr("far", dtype="datetime64[s]")]
    tiledb.Array.create(path, tiledb.ArraySchema(tiledb.Domain(dim), attrs, sparse=True))
    with tiledb.open(path, "w") as array:
        times = np.datetime64("2024-03-01T12:00:00", "ns") + np.array([0, 500_000_000]).astype("m8[ns]")
        far = np.array(["300000-01-01T00:00:01", "2000-01-01T00:00:00"], dtype="M8[s]")
        array[times] = {"day": np.array(["2024-03-01", "2024-03-02"], dtype="M8[s]"), "far": far}
    array = tilefs.open(path)
    assert "2020-01-01 to 2030-01-01  tiles of 30 days" in repr(array.schema)
    page, text = page_of(array)
    # The drawing does not count nanoseconds.
    assert "tiles of 30 days" in text and "time:" not in text and "\u202f" not in text
    assert [line.split("  ") for line in repr(array.read()).splitlines()[2:]] == [
        ["", "2024-03-01 12:00:00.0", "2024-03-01", "300000-01-01 00:00:01"],
        ["", "2024-03-01 12:00:00.5", "2024-03-02", "2000-01-01 00:00:00"],
    ]


def test_cells_of_several_values_are_shown_without_a_picture(tmp_path):
    path = str(tmp_path / "array")
    dims = [tiledb.Dim(name, domain=(0, 3), tile=2, dtype=np.int32) for name in "yx"]
    kind = np.dtype([("", np.float32)] * 3)
    tiledb.Array.create(path, tiledb.ArraySchema(tiledb.Domain(*dims), [tiledb.Attr("a", dtype=kind)]))
    with tiledb.open(path, "w") as array:
        array[:] = np.ones((4, 4), dtype=kind)
    for shown in (tilefs.open(path), tilefs.open(path)["a"]):
        page, text = page_of(shown)
        assert "float32 × 3" in text and not [tag for tag, _ in page.tags if tag == "img"]


def test_first_rows_are_shown(table):
    array = tilefs.open(table)
    assert "<i>4" in repr(array.read()) and "<i>5 " not in repr(array.read())
    assert "at most 20 000 rows, 3 columns" in repr(array.read()).replace("\u202f", " ")
    found = array.read(rows=slice(500, 900), columns=["n"])
    assert found.head(3).column("n").to_pylist() == [500, 501, 502] and "502" in page_of(found)[1]


@pytest.mark.parametrize("count", [0, 1, 5, 1500, 10**6])
@pytest.mark.parametrize("order", ["array", "row"])
def test_head_is_the_first_rows(table, cells, count, order):
    for path in (table, cells[0]):
        rows = tilefs.open(path).read(order=order)
        assert rows.head(count).equals(rows.to_arrow().slice(0, count))


def test_rows_that_have_to_be_merged_first_are_not_read(table, monkeypatch):
    monkeypatch.setattr(_display, "_MOST_MERGED", 1000)
    assert "have to be put in order" in repr(tilefs.open(table).read()) and "have to be put in order" in page_of(tilefs.open(table))[1]
    monkeypatch.setattr(_display, "_MOST_DECODED", 100)
    monkeypatch.setattr(_display, "_MOST_MERGED", 10**6)
    assert "whose tile has" in repr(tilefs.open(table).read())


def test_a_picture_has_the_colours_of_the_cells(tmp_path):
    colours = np.random.default_rng(2).integers(0, 256, (20, 30, 3), dtype=np.uint8)
    found = page_of(tilefs.open(write_dense(tmp_path / "rgb", colours, tile=7))["a"])[0].picture()
    np.testing.assert_array_equal(found[..., :3], colours)
    assert (found[..., 3] == 255).all()
    planes = np.moveaxis(colours, 2, 0).copy()
    np.testing.assert_array_equal(page_of(tilefs.open(write_dense(tmp_path / "planes", planes)))[0].picture()[..., :3], colours)


def test_a_picture_goes_from_dark_to_light_and_leaves_out_what_is_missing(tmp_path):
    values = np.arange(600, dtype="f8").reshape(20, 30)
    values[3, 4] = np.nan
    found = page_of(tilefs.open(write_dense(tmp_path / "values", values, tile=7)))[0].picture()
    assert found.shape == (20, 30, 4) and found[0, 0].tolist() == [68, 1, 84, 255] and found[-1, -1].tolist() == [253, 231, 37, 255]
    assert found[3, 4, 3] == 0 and (found[..., 3] == 0).sum() == 1


def test_a_picture_of_a_large_array_is_of_a_few_tiles(tmp_path):
    path = str(tmp_path / "large")
    dims = [tiledb.Dim(name, domain=(0, 99_999), tile=500, dtype=np.int64) for name in "yx"]
    tiledb.Array.create(path, tiledb.ArraySchema(tiledb.Domain(*dims), [tiledb.Attr("a", dtype=np.float64)]))
    for at in (0, 99_000):
        with tiledb.open(path, "w") as array:
            array[at : at + 1000, at : at + 1000] = np.ones((1000, 1000))
    array = tilefs.open(path)
    window = _pictures._window(array["a"], array.nonempty, (0, 1), None)
    # Tiles of 2 MB: four of these.
    assert sum(one.stop - one.start for one in window) <= 2500 and all(one.start % 500 == 0 for one in window)
    assert (window[0].stop - window[0].start) * (window[1].stop - window[1].start) * 8 <= _pictures._MOST_DECODED
    page, text = page_of(array)
    assert re.search(r"a\[\d+:\d+, \d+:\d+\]", text) and "100 000 × 100 000 cells" in text.replace("\u202f", " ")
    # 199 ends of tiles along each axis: some lines stand for all.
    assert len([tag for tag, _ in page.tags if tag == "line"]) <= 2 * _pictures._MOST_LINES


@pytest.mark.parametrize("ndim", range(1, 8))
def test_tiles_of_any_number_of_axes_are_drawn(tmp_path, ndim):
    page, text = page_of(tilefs.open(write_dense(tmp_path / "array", np.zeros((4, 3, 2, 5, 2, 3, 2)[:ndim], dtype="i1"), tile=2)))
    assert len([tag for tag, _ in page.tags if tag == "svg"]) == -(-ndim // 3)
    assert all(f"d{axis}:" in text for axis in range(ndim))


def test_groups_list_their_members(tmp_path, demo):
    tiledb.Group.create(str(tmp_path / "group"))
    with tiledb.Group(str(tmp_path / "group"), "w") as group:
        group.add(str(demo), "<dem>")
        group.meta["title"] = "members"
    group = tilefs.open(tmp_path / "group")
    page, text = page_of(group)
    assert "<dem>" in text and "1 member" in text and "title" in text and "<dem>" in repr(group)


def test_what_cannot_be_read_is_named(tmp_path):
    path = write_dense(tmp_path / "array", np.arange(600.0).reshape(20, 30))
    (tile,) = path.glob("__fragments/*/a0.tdb")
    tile.write_bytes(b"\0" * 10)
    page, text = page_of(tilefs.open(path))
    assert "a0.tdb" in text and "20 × 30 cells" in text
    closed = tilefs.open(path)
    shown = [closed.schema, closed["a"]]
    closed.close()
    assert closed._repr_html_() is None and "closed" in repr(closed)
    for one in shown:
        assert one._repr_html_() is None and "closed" in repr(one)
