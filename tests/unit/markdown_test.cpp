#include "cli/markdown.hpp"

#include <gmock/gmock.h>

namespace remote::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view page = R"(# A title

<!-- not run: it is an example -->
Some `code` with **bold** words,
*here* and [there](other.md) or [far](https://example.org/x).

## A section

- one
  goes on
- two

| key | type | meaning |
|---|---|---|
| `name` | text | its `a \| b` name |

```yaml
  .dot: 'a\b'
```
)";

TEST(Markdown, IsPrintedForATerminal) {
  EXPECT_EQ(markdown_to_text(page, 40, false), R"(A title

Some code with bold words, here and
there or far (https://example.org/x).

A section

  - one goes on
  - two

  name
      (type: text)
      its a | b name

      .dot: 'a\b'
)");
  EXPECT_THAT(markdown_to_text(page, 40, true), HasSubstr("\033[1mA section\033[0m\n"));
}

TEST(Markdown, BecomesRoffThatHidesWhatRoffWouldTakeForAnOrder) {
  const std::string roff = markdown_to_roff(page);
  EXPECT_THAT(roff, HasSubstr(".SH A SECTION\n"));
  EXPECT_THAT(roff, HasSubstr("Some \\fBcode\\fR with \\fBbold\\fR words, \\fIhere\\fR and there"));
  EXPECT_THAT(roff, HasSubstr(".TP\n\\fBname\\fR (type: text)\nits \\fBa | b\\fR name\n"));
  EXPECT_THAT(roff, HasSubstr(".nf\n\\&.dot: \\(aqa\\eb\\(aq\n.fi\n"));
  EXPECT_THAT(roff, Not(HasSubstr("not run")));
  EXPECT_THAT(markdown_to_roff(".hidden begins\n"), HasSubstr("\\&.hidden"));
}

TEST(Markdown, WhatIsEscapedOrInsideAWordIsNoMark) {
  EXPECT_EQ(markdown_to_text("a_b_c and 2 * 3 * 4, \\*.py and `x_y`\n", 80, false),
            "a_b_c and 2 * 3 * 4, *.py and x_y\n");
}

TEST(Markdown, ATableNeedsNoBlankLineAboveIt) {
  EXPECT_EQ(markdown_to_text("Some text:\n| a | b |\n|---|---|\n| 1 | 2 |\n\n- one\n\n  more\n", 80, false),
            "Some text:\n\n  1\n      2\n\n  - one\n\nmore\n");
}

}  // namespace
}  // namespace remote::cli
