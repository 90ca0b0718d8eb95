#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

// The Markdown of docs/, for `remote help TOPIC` and the manual pages. Parsed by libcmark-gfm; HTML and
// images are skipped.

namespace remote::cli {

// A part of a text in a single style.
struct MarkdownSpan {
  enum class Look { plain, bold, emphasis, code };
  Look look = Look::plain;
  std::string text;
};
// A link is its text, followed by the address if it is on the web.
using MarkdownText = std::vector<MarkdownSpan>;

struct MarkdownBlock {
  enum class Kind { heading, paragraph, item, table, code };
  Kind kind = Kind::paragraph;
  std::size_t level = 0;                          // for a heading: from 1; for an item: its depth, from 0
  MarkdownText text{};                            // on one line; for code: one span with all lines
  std::string mark{};                             // for an item: "-" or "3."
  std::vector<std::vector<MarkdownText>> rows{};  // for a table; the first row is the header
};

std::vector<MarkdownBlock> read_markdown(std::string_view text);

// Wraps text at `width` columns. All lines except the first are indented by `indent` blanks; the first one
// continues at that column.
std::string wrapped(std::string_view text, std::size_t indent, std::size_t width);

// For a terminal: lines of at most `width` columns, except code. `color`: use bold for headings and names.
std::string markdown_to_text(std::string_view markdown, std::size_t width, bool color);

// For a manual page, after its .TH line, in the macros of man(7).
std::string markdown_to_roff(std::string_view markdown);

// Escapes text for roff.
std::string roff_text(std::string_view text);

}  // namespace remote::cli
