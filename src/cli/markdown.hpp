#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

// The Markdown that docs/ is written in, for `remote help TOPIC` and the manual pages. libcmark-gfm reads it;
// HTML and pictures are left out.

namespace remote::cli {

// A piece of a text that looks the same.
struct MarkdownSpan {
  enum class Look { plain, bold, emphasis, code };
  Look look = Look::plain;
  std::string text;
};
// A link is its words, with the address behind them where that is on the web.
using MarkdownText = std::vector<MarkdownSpan>;

struct MarkdownBlock {
  enum class Kind { heading, paragraph, item, table, code };
  Kind kind = Kind::paragraph;
  std::size_t level = 0;                          // of a heading (from 1), of an item (its depth, from 0)
  MarkdownText text{};                            // on one line; of code: one span, with all lines
  std::string mark{};                             // of an item: "-" or "3."
  std::vector<std::vector<MarkdownText>> rows{};  // of a table; the first is its head
};

std::vector<MarkdownBlock> read_markdown(std::string_view text);

// The words of a text on lines that end at `width`, all but the first behind `indent` blanks: where the first
// stands already.
std::string wrapped(std::string_view text, std::size_t indent, std::size_t width);

// For a terminal: lines of at most `width` columns, but for code. `color`: with bold headings and names.
std::string markdown_to_text(std::string_view markdown, std::size_t width, bool color);

// For a manual page, behind its .TH: what is written with the macros of man(7).
std::string markdown_to_roff(std::string_view markdown);

// The text as a manual page has it: with what roff would take for an order escaped.
std::string roff_text(std::string_view text);

}  // namespace remote::cli
