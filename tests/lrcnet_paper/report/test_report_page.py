"""The pages of `lrcnet report`, tested without a browser."""

import re
from dataclasses import replace
from html import escape
from html.parser import HTMLParser

import pytest

from lrcnet.pages import figures, tables
from lrcnet.pages.content import Picture, Table, minus_signs
from lrcnet_paper import artefacts as paper
from lrcnet_paper import report
from lrcnet_paper.report.assemble import further_pictures, outdated_table
from lrcnet_paper.report.summary import interpretation, new_differences
from lrcnet_paper.results.estimate import Estimate
from lrcnet_paper.results.verdict import RULES, Verdict, css_class, summarise

VOID = {"meta", "link", "br", "img", "input", "use", "path", "rect"}


class Outline(HTMLParser):
    """Collect ids and references, and check that elements close in order."""

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.references, self.broken = [], [], [], []

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.ids += [values["id"]] if "id" in values else []
        self.references += [value for name, value in attributes if name in ("href", "src") and value]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if tag in VOID:
            return
        if not self.open or self.open.pop() != tag:
            self.broken.append(tag)


@pytest.fixture(scope="module")
def html(page):
    return page.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def outline(html):
    parser = Outline()
    parser.feed(html)
    return parser


def test_the_page_is_well_formed(outline):
    assert not outline.broken
    assert not outline.open


def test_no_id_occurs_twice_and_every_reference_has_its_target(outline):
    assert len(set(outline.ids)) == len(outline.ids)
    inner = {reference[1:] for reference in outline.references if reference.startswith("#")}
    assert inner <= set(outline.ids)


def test_the_page_loads_nothing_from_elsewhere(html, outline):
    assert {r for r in outline.references if not r.startswith(("#", "data:"))} == {"report-setup.html"}
    addresses = set(re.findall(r"https?://[^\s\"'<>)]+", html))
    assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}, "only names of namespaces"
    assert html.count("<script>") == 1, "the contents that follow the reader"
    assert "@import" not in html


def test_the_page_names_every_artefact_and_the_rule(html):
    for name in paper.ARTEFACTS:
        assert (f'<section id="{name}">' in html) == (name != "setup")
    assert html.count("<li>") > len(RULES)


def test_every_picture_has_a_text_alternative(html, sections):
    count = sum(len(s.rendered.pictures) + len(further_pictures(s.rendered)) for s in sections)
    assert html.count("<figure") == count
    assert len(re.findall(r'role="img" aria-label="[^"]{30,}"', html)) == count


def test_no_table_and_no_difference_of_an_artefact_is_lost(page, sections):
    text = "".join(file.read_text(encoding="utf-8") for file in (page, page.with_name("report-setup.html")))
    for section in sections:
        blocks = (*section.rendered.tables, *section.rendered.sensitivities)
        for title in (block.title for block in blocks if isinstance(block, Table)):
            assert escape(minus_signs(title)) in text, title
        for line in section.rendered.differences:
            assert escape(minus_signs(line)) in text, line


def test_pictures_follow_the_pages_colours(html):
    svgs = html[html.index("<svg") :]
    assert "currentColor" in svgs
    for colour in ("#1b1f24", "#d3d8de"):
        assert colour not in svgs


def test_the_second_page_says_how_the_runs_were_made(page, html):
    second = page.with_name("report-setup.html")
    assert f'href="{second.name}"' in html
    text = second.read_text(encoding="utf-8")
    assert f'href="{page.name}"' in text
    assert "a test made these runs up" in text, "the machine"
    assert "lrcnet train person --model lrcu-s" in text
    assert "lrcnet reproduce --budget paper" in text
    assert '<section id="setup">' in text


def test_the_page_opens_with_five_sentences_and_a_row_per_table_or_figure(html, sections):
    start = html.index('<section id="overview">')
    text = html[html.index('<div class="opening">', start) : html.index("</div>", start)]
    sentences = re.findall("<li>(.*?)</li>", text)
    assert len(sentences) == 5
    assert all(sentence.endswith(".") for sentence in sentences)
    rows = html[start : html.index("</section>", start)].count('<tr><th scope="row"')
    assert rows == sum(section.part == "paper" for section in sections)


def test_the_page_is_small_and_its_text_is_text(html, page):
    assert page.stat().st_size < 1_500_000
    assert html.count("<text") > 300
    titles = re.findall(r"<text[^>]*>([^<]+)</text>", html)
    assert any("orbits of LRC-S and the Neural ODE" in title for title in titles)


def test_shortening_a_picture_leaves_the_numbers_that_people_read_alone(tmp_path):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(2, 2))
    axes = figure.subplots()
    axes.plot([0.0, 1.23456], [0.0, 1.0])
    axes.set_title("0.0001 to 12.34567")
    (file,) = figures.save(Picture("p", "", "", figure), tmp_path, ("svg",))
    assert "0.0001 to 12.34567" in file.read_text()
    tags = "".join(re.findall(r"<[^>]*>", file.read_text()))
    assert not re.search(r"[ML ,]\d+\.\d{3,}", tags)


def test_no_statement_about_the_protocol_is_made_twice(sections):
    stated = [line for lines in new_differences(sections).values() for line in lines if not line.startswith("As in “")]
    assert len(set(stated)) == len(stated)
    assert set(stated) == {line for section in sections for line in section.rendered.differences}


def test_captions_name_no_checkpoint(sections):
    for section in sections:
        for picture in (*section.rendered.pictures, *further_pictures(section.rendered)):
            assert "ckpt" not in picture.caption


def test_every_picture_but_a_diagram_says_its_finding(sections):
    for section in sections:
        for picture in (*section.rendered.pictures, *further_pictures(section.rendered)):
            assert picture.figure.get_suptitle() or section.name == "architecture", picture.name


def test_minus_signs_are_minus_signs(html):
    body = re.sub(r"<(script|style|pre|code)>.*?</\1>", "", html, flags=re.S)
    texts = re.findall(r">([^<]+)<", body)
    assert not [text for text in texts if re.search(r"(?<![\w.)\]-])-\.?\d", text)]


def test_the_contents_show_the_verdict_of_each_section(html, sections):
    for section in sections:
        if section.rendered.claims:
            word = summarise([claim.verdict for claim in section.rendered.claims]).word
            assert f'<a href="#{section.name}"><span class="dot {css_class(word)}"' in html


def test_every_section_with_claims_says_what_they_show(sections):
    for section in sections:
        text = interpretation(section)
        assert bool(text) == bool(section.rendered.claims)
        assert section.says in text


def test_results_of_an_earlier_protocol_are_listed_and_used_nowhere(whole_paper):
    old = [replace(r, result=replace(r.result, spec=r.result.spec.with_(protocol=1))) for r in whole_paper]
    ode = [run for run in old if run.result.task == "neural-ode"]
    assert report.assemble(ode, ["neural-ode"])[0].rendered == report.assemble([], ["neural-ode"])[0].rendered
    table = outdated_table(ode)
    assert table is not None
    assert sum(row[2] for row in table.rows) == len(ode)
    assert outdated_table(whole_paper) is None


def test_the_same_runs_give_the_same_bytes(whole_paper, tmp_path):
    runs = [run for run in whole_paper if run.result.task == "imdb"]
    names = ["architecture", "classification"]
    pages = [report.write_html(report.assemble(runs, names), runs, tmp_path / str(i) / "a.html") for i in range(2)]
    assert pages[0].read_bytes() == pages[1].read_bytes()


def test_text_from_runs_is_escaped():
    table = Table("t", "<T> & co", ("a", "b"), [("<script>", Verdict("agrees", ("<b>",)))], "a < b")
    text = tables.to_html(table)
    assert "<script>" not in text
    assert "&lt;b&gt;" in text
    assert "&lt;T&gt; &amp; co" in text


def test_a_table_becomes_text_markdown_and_csv():
    table = Table(
        "t",
        "Title",
        ("model", "ours", "verdict", "n"),
        [("LRCU-S", Estimate(84.2, 0.3, 3, 1, digits=1), Verdict("agrees"), 23_573), ("a|b", None, None, None)],
        "A note.",
    )
    assert tables.to_text(table).splitlines()[3] == "LRCU-S  84.2 ± 0.3 (1 NaN)  agrees   23,573"
    markdown = tables.to_markdown(table)
    assert "| LRCU-S | 84.2 ± 0.3 (1 NaN) | agrees | 23,573 |" in markdown
    assert "| a\\|b | – | – | – |" in markdown
    assert markdown.endswith("A note.")
    assert tables.to_csv(table).splitlines() == [
        "model,ours,ours: std,ours: seeds,ours: diverged,verdict,n",
        "LRCU-S,84.2,0.3,3,1,agrees,23573",
        "a|b,,,,,,",
    ]


def test_markdown_links_pictures_that_exist_and_drops_old_ones(sections, whole_paper, tmp_path):
    (tmp_path / "reproduction").mkdir()
    (tmp_path / "reproduction" / "elastance-old.svg").write_text("<svg/>")
    file = report.write_markdown(sections, whole_paper, tmp_path / "reproduction.md")
    pages = file.read_text() + (tmp_path / "reproduction-setup.md").read_text()
    linked = re.findall(r"\]\((reproduction/[^)]+)\)", pages)
    assert sorted(linked) == sorted(f"reproduction/{p.name}" for p in (tmp_path / "reproduction").iterdir())
    assert all((tmp_path / name).stat().st_size < 400_000 for name in linked)


def test_markdown_never_deletes_pictures_of_others(sections, whole_paper, tmp_path):
    (tmp_path / "reproduction").mkdir()
    (tmp_path / "reproduction" / "photo.svg").write_text("<svg/>")
    report.write_markdown(sections[:1], whole_paper, tmp_path / "reproduction.md")
    assert (tmp_path / "reproduction" / "photo.svg").exists()
    with pytest.raises(ValueError, match=r"must be a \.md file"):
        report.write_markdown(sections[:1], whole_paper, tmp_path / "reproduction")


def test_an_artefact_leaves_pictures_and_tables(sections, tmp_path):
    section = next(section for section in sections if section.name == "elastance")
    report.write_folder(section, tmp_path)
    assert {path.name for path in (tmp_path / "elastance").iterdir()} == {
        "README.md",
        "claims.csv",
        "shapes.csv",
        "shapes.png",
        "shapes.svg",
    }


def test_a_picture_file_has_no_date(sections, tmp_path):
    section = next(section for section in sections if section.name == "elastance")
    picture = section.rendered.pictures[0]
    first = [path.read_bytes() for path in figures.save(picture, tmp_path)]
    assert first == [path.read_bytes() for path in figures.save(picture, tmp_path)]
    assert b"<dc:date>" not in first[1]


def test_a_report_without_runs_shows_the_papers_numbers(tmp_path):
    sections = report.assemble([])
    page = report.write_html(sections, [], tmp_path / "empty.html").read_text()
    assert "84.21 ± 0.26" in page
    assert "Not drawn" in page
