#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

// The Markdown that docs/ is written in, for `remote help TOPIC` and the manual pages: headings, paragraphs,
// lists, tables and blocks of code; within a line code, bold, emphasis and links. HTML comments are left out.

namespace remote::cli {

struct MarkdownBlock {
  enum class Kind { heading, paragraph, item, table, code };
  Kind kind = Kind::paragraph;
  std::size_t level = 0;  // of a heading (from 1), of an item (how deep it is indented, from 0)
  std::string text;       // with its marks, on one line; of code: the lines
  std::string mark;       // of an item: "-" or "3."
  std::vector<std::vector<std::string>> rows;  // of a table; the first is its head
};

std::vector<MarkdownBlock> read_markdown(std::string_view text);

// A piece of a text that looks the same.
struct MarkdownSpan {
  enum class Look { plain, bold, emphasis, code };
  Look look = Look::plain;
  std::string text;
};

// The text without its marks. A link becomes its words, with the address behind them where that is on the
// web.
std::vector<MarkdownSpan> read_spans(std::string_view text);

// For a terminal: lines of at most `width` columns, but for code. `color`: with bold headings and names.
std::string markdown_to_text(std::string_view markdown, std::size_t width, bool color);

// For a manual page, behind its .TH: what is written with the macros of man(7).
std::string markdown_to_roff(std::string_view markdown);

// The text as a manual page has it: with what roff would take for an order escaped.
std::string roff_text(std::string_view text);

}  // namespace remote::cli
