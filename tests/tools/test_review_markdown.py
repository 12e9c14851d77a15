"""Texts of others in GitHub's markdown."""

from tools.review.markdown import block, code, details, table, text


def test_markup_html_mentions_and_references_stay_text() -> None:
    assert text("a *b* [c](d) <img src=x>\n| e") == r"a \*b\* \[c\](d) \<img src=x\> \| e"
    assert text("ask @team about #12") == "ask @\u200bteam about #\u200b12"
    assert text("costs $5 to $6 `now` \\") == r"costs \$5 to \$6 \`now\` \\"


def test_code_is_fenced_by_more_backticks_than_it_has() -> None:
    assert code("plain") == "`plain`"
    assert code("a `b` ``c``") == "``` a `b` ``c`` ```"
    assert code("") == "` `"


def test_code_in_a_table_splits_no_cell_and_no_line() -> None:
    assert table(["x"], [[code("a|b\nc")]]) == "| x |\n| --- |\n| `a\\|b c` |"


def test_a_block_cannot_be_closed_from_inside() -> None:
    assert block(["```", "</details>", "  kept"], "diff") == "````diff\n```\n</details>\n  kept\n````"


def test_what_is_invisible_or_turns_the_reading_direction_is_left_out() -> None:
    assert text("a\u202eb\u200bc\x1b[31m") == r"abc\[31m"


def test_a_folded_part_has_the_empty_lines_that_markdown_inside_needs() -> None:
    assert details("more", "- x") == "<details><summary>more</summary>\n\n- x\n\n</details>"
