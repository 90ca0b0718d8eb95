// Renders Markdown for a terminal and for manual pages.

#include <algorithm>

#include "base/strings.hpp"
#include "cli/markdown.hpp"
#include "ui/terminal.hpp"

namespace remote::cli {
namespace {

using Kind = MarkdownBlock::Kind;
using Look = MarkdownSpan::Look;

std::string plain(const MarkdownText& text) {
  std::string out;
  for (const MarkdownSpan& span : text) {
    out += span.text;
  }
  return out;
}

// The cells between the first and the last column of a row: "type: text; default: none".
MarkdownText middle_of(const MarkdownBlock& table, const std::vector<MarkdownText>& row) {
  MarkdownText text;
  for (std::size_t i = 1; i + 1 < row.size(); ++i) {
    if (!row[i].empty()) {
      const auto add = [&text](const MarkdownText& more) {
        text.insert(text.end(), more.begin(), more.end());
      };
      add({{Look::plain, text.empty() ? "" : "; "}});
      add(table.rows.front()[i]);
      add({{Look::plain, ": "}});
      add(row[i]);
    }
  }
  return text;
}

std::string table_text(const MarkdownBlock& table, std::size_t width, const auto& bold) {
  std::string out;
  for (std::size_t i = 1; i < table.rows.size(); ++i) {
    const auto& row = table.rows[i];
    const std::string middle = plain(middle_of(table, row));
    out += "  " + bold(plain(row.front())) + "\n";
    if (!middle.empty()) {
      out += std::string(6, ' ') + wrapped("(" + middle + ")", 6, width) + "\n";
    }
    if (row.size() > 1) {
      out += std::string(6, ' ') + wrapped(plain(row.back()), 6, width) + "\n";
    }
  }
  return out;
}

std::string indented(const std::string& lines, std::size_t by) {
  std::string out;
  for (const std::string& line : split(lines, '\n')) {
    out += line.empty() ? "\n" : std::string(by, ' ') + line + "\n";
  }
  return out.substr(0, out.size() - 1);
}

std::string roff_spans(const MarkdownText& text) {
  std::string out;
  for (const MarkdownSpan& span : text) {
    const std::string inner = roff_text(span.text);
    if (span.look == Look::plain) {
      out += inner;
    } else {
      out += (span.look == Look::emphasis ? "\\fI" : "\\fB") + inner + "\\fR";
    }
  }
  // roff treats a line that starts with a period or an apostrophe as a request.
  return out.starts_with('.') || out.starts_with('\'') ? "\\&" + out : out;
}

std::string roff_code(const std::string& code) {
  std::string out = ".PP\n.RS 4\n.nf\n";
  for (const std::string& line : split(std::string(trim(code)), '\n')) {
    const std::string text = roff_text(line.substr(0, line.find_last_not_of(' ') + 1));
    out += (text.starts_with('.') || text.starts_with('\'') || text.empty() ? "\\&" : "") + text + "\n";
  }
  return out + ".fi\n.RE\n";
}

std::string roff_table(const MarkdownBlock& table) {
  std::string out;
  for (std::size_t i = 1; i < table.rows.size(); ++i) {
    const auto& row = table.rows[i];
    if (row.size() < 2) {
      continue;
    }
    const MarkdownText middle = middle_of(table, row);
    out += ".TP\n" + roff_spans(row.front()) + (middle.empty() ? "" : " (" + roff_spans(middle) + ")") +
           "\n" + (row.back().empty() ? "\\&" : roff_spans(row.back())) + "\n";
  }
  return out;
}

std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  return text;
}

}  // namespace

std::string wrapped(std::string_view text, std::size_t indent, std::size_t width) {
  std::string out;
  std::size_t at = indent;
  for (const std::string& word : split_words(text)) {
    const std::size_t size = ui::display_width(word);
    if (at > indent && at + 1 + size > width) {
      out += "\n" + std::string(indent, ' ');
      at = indent;
    } else if (at > indent) {
      out += ' ';
      ++at;
    }
    out += word;
    at += size;
  }
  return out;
}

std::string markdown_to_text(std::string_view markdown, std::size_t width, bool color) {
  const auto bold = [color](const std::string& text) { return color ? "\033[1m" + text + "\033[0m" : text; };
  std::string out;
  Kind before = Kind::heading;
  for (const MarkdownBlock& block : read_markdown(markdown)) {
    // No blank lines between the items of a list.
    if (!out.empty() && (block.kind != Kind::item || before != Kind::item)) {
      out += "\n";
    }
    before = block.kind;
    switch (block.kind) {
      case Kind::heading:
        out += bold(plain(block.text)) + "\n";
        break;
      case Kind::paragraph:
        out += wrapped(plain(block.text), 0, width) + "\n";
        break;
      case Kind::item: {
        const std::string head = std::string(2 + block.level * 2, ' ') + block.mark + " ";
        out += head + wrapped(plain(block.text), head.size(), width) + "\n";
        break;
      }
      case Kind::table:
        out += table_text(block, width, bold);
        break;
      case Kind::code:
        out += indented(plain(block.text), 4);
        break;
    }
  }
  return out;
}

std::string roff_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '\\':
        out += "\\e";
        break;
      case '-':
        out += "\\-";
        break;
      case '\'':
        out += "\\(aq";
        break;
      case '`':
        out += "\\(ga";
        break;
      case '^':
        out += "\\(ha";
        break;
      case '~':
        out += "\\(ti";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string markdown_to_roff(std::string_view markdown) {
  std::string out;
  bool after_heading = true;
  for (const MarkdownBlock& block : read_markdown(markdown)) {
    switch (block.kind) {
      case Kind::heading:
        if (block.level > 1) {  // level 1 is the title of the page
          out += block.level == 2 ? ".SH " + roff_text(upper(plain(block.text))) + "\n"
                                  : ".SS " + roff_text(plain(block.text)) + "\n";
        }
        break;
      case Kind::paragraph:
        out += (after_heading ? "" : ".PP\n") + roff_spans(block.text) + "\n";
        break;
      case Kind::item:
        out += ".IP " + (block.mark.size() > 1 ? block.mark : std::string("\\(bu")) + " " +
               std::to_string(block.mark.size() + 2) + "\n" + roff_spans(block.text) + "\n";
        break;
      case Kind::table:
        out += roff_table(block);
        break;
      case Kind::code:
        out += roff_code(plain(block.text));
        break;
    }
    after_heading = block.kind == Kind::heading;
  }
  return out;
}

}  // namespace remote::cli
