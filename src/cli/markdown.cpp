#include "cli/markdown.hpp"

#include <algorithm>
#include <cctype>

#include "base/strings.hpp"

namespace remote::cli {
namespace {

using Kind = MarkdownBlock::Kind;
using Look = MarkdownSpan::Look;

std::string without_comments(std::string_view text) {
  std::string out;
  while (true) {
    const std::size_t begin = text.find("<!--");
    const std::size_t end = begin == std::string_view::npos ? begin : text.find("-->", begin);
    if (end == std::string_view::npos) {
      return out + std::string(text);
    }
    out += text.substr(0, begin);
    text.remove_prefix(end + 3);
  }
}

// "- " or "12. " at the beginning; empty if there is none.
std::string_view item_mark(std::string_view line) {
  std::size_t digits = 0;
  while (digits < line.size() && std::isdigit(static_cast<unsigned char>(line[digits])) != 0) {
    ++digits;
  }
  const bool numbered = digits > 0 && line.substr(digits).starts_with(". ");
  if (numbered) {
    return line.substr(0, digits + 1);
  }
  return line.starts_with("- ") || line.starts_with("* ") ? line.substr(0, 1) : std::string_view{};
}

// The cells of "| a | b |". A bar in code, or behind a backslash, belongs to the cell.
std::vector<std::string> cells_of(std::string_view line) {
  std::vector<std::string> cells;
  std::string cell;
  bool code = false;
  for (std::size_t i = 1; i < line.size(); ++i) {
    if (line[i] == '\\' && i + 1 < line.size() && line[i + 1] == '|') {
      cell += line[++i];
    } else if (line[i] == '|' && !code) {
      cells.emplace_back(trim(cell));
      cell.clear();
    } else {
      code = line[i] == '`' ? !code : code;
      cell += line[i];
    }
  }
  return cells;
}

bool is_rule(const std::vector<std::string>& cells) {
  return std::ranges::all_of(
      cells, [](const std::string& cell) { return cell.find_first_not_of("-: ") == std::string::npos; });
}

class Reader {
 public:
  std::vector<MarkdownBlock> read(std::string_view text) {
    for (const std::string& line : split(without_comments(text), '\n')) {
      take(line);
    }
    return std::move(blocks_);
  }

 private:
  void take(const std::string& line) {
    const std::string_view bare = trim(line);
    if (bare.starts_with("```")) {
      in_code_ = !in_code_;
      if (in_code_) {
        code_indent_ = line.find('`');
        blocks_.push_back({Kind::code, 0, "", "", {}});
      }
      open_ = false;
    } else if (in_code_) {
      const std::size_t indent = std::min(code_indent_, line.find_first_not_of(' '));
      blocks_.back().text += (indent == std::string::npos ? "" : line.substr(indent)) + "\n";
    } else if (bare.empty()) {
      open_ = false;
    } else if (bare.starts_with('#')) {
      const std::size_t level = bare.find_first_not_of('#');
      blocks_.push_back({Kind::heading, level, std::string(trim(bare.substr(level))), "", {}});
      open_ = false;
    } else if (bare.starts_with("![") && bare.ends_with(')')) {
      open_ = false;  // a picture
    } else if (bare.starts_with('|')) {
      take_row(cells_of(bare));
    } else if (const std::string_view mark = item_mark(bare); !mark.empty()) {
      blocks_.push_back({Kind::item,
                         line.find_first_not_of(' ') / 2,
                         std::string(trim(bare.substr(mark.size()))),
                         std::string(mark),
                         {}});
      open_ = true;
    } else if (open_) {
      blocks_.back().text += " " + std::string(bare);
    } else {
      blocks_.push_back(
          {Kind::paragraph, 0, std::string(bare.substr(bare.starts_with("> ") ? 2 : 0)), "", {}});
      open_ = true;
    }
  }

  void take_row(std::vector<std::string> cells) {
    if (blocks_.empty() || blocks_.back().kind != Kind::table || !in_table()) {
      blocks_.push_back({Kind::table, 0, "", "", {}});
    }
    if (!is_rule(cells)) {
      blocks_.back().rows.push_back(std::move(cells));
    }
    open_ = false;
  }
  bool in_table() const { return !blocks_.empty() && blocks_.back().kind == Kind::table; }

  std::vector<MarkdownBlock> blocks_;
  bool open_ = false;  // the next line goes on with the last block
  bool in_code_ = false;
  std::size_t code_indent_ = 0;
};

// Takes one marked piece off the front of `text`; false if there is none.
bool take_marked(std::string_view& text, std::string_view mark, Look look, std::vector<MarkdownSpan>& spans) {
  if (!text.starts_with(mark)) {
    return false;
  }
  const std::size_t end = text.find(mark, mark.size());
  if (end == std::string_view::npos || end == mark.size()) {
    return false;
  }
  std::string inner(text.substr(mark.size(), end - mark.size()));
  if (look != Look::code) {
    std::string plain;
    for (const MarkdownSpan& span : read_spans(inner)) {
      plain += span.text;
    }
    inner = plain;
  }
  spans.push_back({look, inner});
  text.remove_prefix(end + mark.size());
  return true;
}

bool take_link(std::string_view& text, std::vector<MarkdownSpan>& spans) {
  if (!text.starts_with('[') && !text.starts_with("![")) {
    return false;
  }
  const std::size_t begin = text.find('[');
  const std::size_t middle = text.find("](");
  const std::size_t end = middle == std::string_view::npos ? middle : text.find(')', middle);
  if (end == std::string_view::npos ||
      text.substr(begin + 1, middle - begin).find('[') != std::string_view::npos) {
    return false;
  }
  for (MarkdownSpan& span : read_spans(text.substr(begin + 1, middle - begin - 1))) {
    spans.push_back(std::move(span));
  }
  const std::string_view address = text.substr(middle + 2, end - middle - 2);
  if (address.starts_with("http")) {
    spans.push_back({Look::plain, " (" + std::string(address) + ")"});
  }
  text.remove_prefix(end + 1);
  return true;
}

}  // namespace

std::vector<MarkdownBlock> read_markdown(std::string_view text) {
  return Reader().read(text);
}

std::vector<MarkdownSpan> read_spans(std::string_view text) {
  std::vector<MarkdownSpan> spans;
  bool word = false;  // the character before is one of a word: a star or underscore there is no mark
  while (!text.empty()) {
    if (take_marked(text, "``", Look::code, spans) || take_marked(text, "`", Look::code, spans) ||
        (!word &&
         (take_marked(text, "**", Look::bold, spans) || take_marked(text, "*", Look::emphasis, spans) ||
          take_marked(text, "_", Look::emphasis, spans))) ||
        take_link(text, spans)) {
      word = true;
      continue;
    }
    if (text.front() == '\\' && text.size() > 1 && std::ispunct(static_cast<unsigned char>(text[1])) != 0) {
      text.remove_prefix(1);
    }
    if (spans.empty() || spans.back().look != Look::plain) {
      spans.push_back({});
    }
    spans.back().text += text.front();
    word = std::isalnum(static_cast<unsigned char>(text.front())) != 0;
    text.remove_prefix(1);
  }
  return spans;
}

}  // namespace remote::cli
