import pytest

from webapp.core.text.markdown import line, markdown, preview


@pytest.mark.parametrize(
    "attack",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "[x](javascript:alert(1))",
        "![x](https://evil.example/pixel.png)",
        '<a href="x" onclick="y">z</a>',
        "$<script>alert(1)</script>$",
    ],
)
@pytest.mark.parametrize("draw", (markdown, line))
def test_nothing_of_a_strangers_text_runs_or_loads(attack, draw):
    html = draw(attack)
    assert not any(bad in html for bad in ("<script", "<img", 'href="javascript', '<a href="x" onclick'))


def test_blocks_find_their_own_direction():
    assert markdown("مرحبا\n\nhello").count('<p dir="auto">') == 2


def test_lists_and_quotes_stand_where_their_words_begin():
    assert '<ol dir="rtl">' in markdown("1. أولاً\n2. ثانياً")
    assert '<ul dir="rtl">' in markdown("- (1) مرحبا hello\n\n- نعم")
    assert '<blockquote dir="rtl">' in markdown("> مرحبا")
    assert "rtl" not in markdown("1. first مرحبا\n2. 第二\n\n> 2024")


def test_code_tables_and_formulas_render():
    html = markdown("`x<y`\n\n|a|b|\n|-|-|\n|1|2|\n\n$x^2$ costs $5 or $6")
    assert '<code dir="auto">x&lt;y</code>' in html and "<table>" in html
    assert '<span class="math" dir="ltr">x^2</span>' in html and "costs $5 or $6" in html


def test_missing_text_is_nothing():
    assert markdown(None) == "" == markdown("")


def test_formulas_between_brackets_render_as_those_between_dollars():
    html = markdown(r"so \(a_1 * b_2 * c\) and \[ \frac{1}{2} \] stand in one paragraph")
    assert (
        '<span class="math" dir="ltr">a_1 * b_2 * c</span>' in html
        and '<span class="math display" dir="ltr">\\frac{1}{2}</span>' in html
    )
    assert html.count("<p") == 1
    assert markdown("so $$x$$ does").count("<p") == 1


def test_a_bracket_that_is_never_closed_stays_a_bracket():
    assert "math" not in markdown(r"an escaped \( and \[ alone")


def test_a_book_of_open_brackets_takes_no_longer_than_a_book():
    assert "math" not in markdown(r"\( " * 60_000)


def test_line_breaks_stand():
    assert markdown("(A) one\n(B) two").count("<br") == 1


def test_a_line_has_emphasis_code_and_formulas_but_no_blocks():
    html = line("# Uses **two** `x<y`\n- and $$x^2$$ or \\(y\\)")
    assert "<strong>two</strong>" in html and '<code dir="auto">x&lt;y</code>' in html and html.startswith("# Uses")
    assert html.count('<span class="math" dir="ltr">') == 2 and html.count("<br") == 1
    assert not any(tag in html for tag in ("<p", "<h1", "<ul", "display"))


def test_what_a_line_shows_as_it_is_costs_no_parsing(monkeypatch):
    monkeypatch.setattr("webapp.core.text.markdown._parser", lambda: pytest.fail("parsed"))
    assert line('Names Ravel\'s "Boléro" (1928).') == "Names Ravel&#x27;s &quot;Boléro&quot; (1928)."
    assert line("يذكر ثلاثة أسباب على الأقل") == "يذكر ثلاثة أسباب على الأقل"
    assert line(None) == "" == line("")


def drawn(source: str, within: bool = True) -> str:
    formula = f'<span class="math" dir="ltr">{source}</span>'
    return f'<span class="math inline">{formula}</span>' if within else formula


CUT = r"Let $x^2$ be. Now $\frac{x^2-1}{x-1} \to 2$ and the rest of it"


@pytest.mark.parametrize(
    "text, most, html",
    [
        ("a  b\n\n- c", 300, "a b - c"),
        ("word " * 100, 9, "word word…"),
        (CUT, 30, f"Let {drawn('x^2')} be. Now…"),
        (r"So \(a + b\) and \(c + d\) hold", 22, f"So {drawn('a + b')} and…"),
        (r"So \[a\] and $$c + d$$ hold", 18, f"So {drawn('a', within=False)} and…"),
        ("It costs $5 and $6 a day", 18, "It costs $5 and $6…"),
        ("It costs $5 and no more", 15, "It costs $5 and…"),
        (r"$\frac{1}{2}$ and", 8, r"$\frac{1…"),
        ("See [this](https://a.example) <b>", 300, "See this &lt;b&gt;"),
        ("Use:\n```python\nx = a * b * c\n```", 25, 'Use: <code dir="auto">python x = a * b…</code>'),
    ],
)
def test_a_preview_is_one_line_that_is_cut_where_no_formula_breaks(text, most, html):
    assert preview(text, most) == html


def test_an_excerpt_that_was_cut_in_a_formula_ends_before_it():
    assert preview(CUT[:30]) == f"Let {drawn('x^2')} be. Now…"


def test_a_preview_of_a_book_of_dollars_takes_no_longer_than_its_beginning():
    assert len(preview("$\\(" * 100_000)) < 10_000
