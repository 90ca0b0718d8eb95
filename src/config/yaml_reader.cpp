#include "config/yaml_reader.hpp"

#include <algorithm>
#include <map>
#include <new>
#include <sstream>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include "base/strings.hpp"
#include "config/missing_colon.hpp"

namespace remote::config {
namespace {

Mark mark_of(const YAML::Mark& mark) {
  return {mark.line + 1, mark.column + 1};
}

// Builds the tree from yaml-cpp's events; stops at the first construct that is not allowed in a
// configuration.
class TreeBuilder : public YAML::EventHandler {
 public:
  explicit TreeBuilder(const std::string& file) : file_(file) {}

  NodePtr root() const { return root_; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (document_started_) {
      fail(mark_of(mark), "a second YAML document begins here", "remove the line that holds ---");
    }
    document_started_ = true;
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add(make(YamlNode::Kind::null, mark_of(mark)), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) {
      fail(mark_of(mark), "this alias is inside the node that it refers to");
    }
    count(mark_of(mark));
    place(found->second, mark_of(mark));
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    check_tag(tag, mark);
    auto node = make(YamlNode::Kind::scalar, mark_of(mark));
    node->text = value;
    plain_merge_key_ = value == "<<" && tag == "?";
    add(std::move(node), anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    check_tag(tag, mark);
    open(YamlNode::Kind::list, mark, anchor);
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    check_tag(tag, mark);
    open(YamlNode::Kind::map, mark, anchor);
  }
  void OnMapEnd() override {
    merge();
    close();
  }

 private:
  // A list or map that has not ended yet.
  struct Open {
    std::shared_ptr<YamlNode> node;
    YAML::anchor_t anchor;
    std::unordered_map<std::string, int> lines;  // key -> line
    bool has_key = false;                        // for a map: `key` waits for its value
    YamlNode::Entry key{};
    bool key_is_merge = false;
    std::vector<std::pair<Mark, NodePtr>> merges{};  // values of "<<"
  };

  [[noreturn]] void fail(Mark mark, const std::string& reason, const std::string& hint = {}) const {
    throw config_error(file_, mark, reason, hint);
  }

  void count(Mark mark) {
    if (++nodes_ > max_config_nodes) {
      fail(mark, "the file is too large: more than " + std::to_string(max_config_nodes) + " values");
    }
  }

  std::shared_ptr<YamlNode> make(YamlNode::Kind kind, Mark mark) {
    count(mark);
    auto node = std::make_shared<YamlNode>();
    node->kind = kind;
    node->mark = mark;
    return node;
  }

  void check_tag(const std::string& tag, const YAML::Mark& mark) const {
    if (!tag.empty() && tag != "?" && tag != "!" && !tag.starts_with("tag:yaml.org,2002:")) {
      fail(mark_of(mark), "the tag '" + printable(tag) + "' is not supported", "remove the tag");
    }
  }

  void open(YamlNode::Kind kind, const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (open_.size() >= max_config_depth) {
      fail(mark_of(mark), "too deeply nested: more than " + std::to_string(max_config_depth) + " levels");
    }
    open_.push_back(Open{make(kind, mark_of(mark)), anchor, {}});
  }

  void close() {
    Open top = std::move(open_.back());
    open_.pop_back();
    plain_merge_key_ = false;
    add(top.node, top.anchor);
  }

  void add(std::shared_ptr<YamlNode> node, YAML::anchor_t anchor) {
    const Mark mark = node->mark;
    if (anchor != 0) {
      anchors_[anchor] = node;
    }
    place(std::move(node), mark);
  }

  // Adds a finished node to the open list or map, or makes it the root.
  void place(NodePtr node, Mark mark) {
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& top = open_.back();
    if (top.node->kind == YamlNode::Kind::list) {
      top.node->items.push_back(std::move(node));
    } else if (!top.has_key) {
      take_key(top, *node, mark);
    } else if (top.key_is_merge) {
      top.merges.emplace_back(mark, std::move(node));
      top.has_key = false;
    } else {
      top.key.value = std::move(node);
      top.node->entries.push_back(std::move(top.key));
      top.has_key = false;
    }
    plain_merge_key_ = false;
  }

  void take_key(Open& top, const YamlNode& node, Mark mark) const {
    if (node.kind != YamlNode::Kind::scalar) {
      fail(mark, node.kind == YamlNode::Kind::null ? "the key before the ':' is missing"
                                                   : "a key must be plain text");
    }
    const auto [first, fresh] = top.lines.emplace(node.text, mark.line);
    if (!fresh) {
      fail(mark,
           "'" + printable(node.text) + "' is given twice: first on line " + std::to_string(first->second),
           "remove one of the two");
    }
    top.has_key = true;
    top.key_is_merge = plain_merge_key_;
    top.key = YamlNode::Entry{node.text, mark, nullptr};
  }

  // "<<: *defaults" and "<<: [*a, *b]": adds entries of other maps whose keys this map does not have.
  void merge() {
    Open& top = open_.back();
    for (const auto& [mark, value] : std::exchange(top.merges, {})) {
      const bool list = value->kind == YamlNode::Kind::list;
      for (const NodePtr& source : list ? value->items : std::vector<NodePtr>{value}) {
        if (source->kind != YamlNode::Kind::map) {
          fail(mark, "'<<' takes a map or a list of maps");
        }
        merge_one(top, *source, mark);
      }
    }
  }

  void merge_one(Open& top, const YamlNode& source, Mark mark) {
    for (const YamlNode::Entry& entry : source.entries) {
      count(mark);
      if (top.lines.emplace(entry.key, entry.mark.line).second) {
        top.node->entries.push_back(entry);
      }
    }
  }

  const std::string& file_;
  NodePtr root_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, NodePtr> anchors_;
  std::size_t nodes_ = 0;
  bool document_started_ = false;
  bool plain_merge_key_ = false;
};

Mark mark_at(const std::string& text, std::size_t offset) {
  Mark mark;
  for (std::size_t i = 0; i < offset;) {
    const Utf8Char c = utf8_at(text, i);
    i += c.length;
    if (c.code == '\n') {
      ++mark.line;
      mark.column = 1;
    } else {
      ++mark.column;
    }
  }
  return mark;
}

void check_bytes(const std::string& text, const std::string& file) {
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) {
    throw config_error(file, {}, "the file is UTF-16, not UTF-8", "save it as UTF-8");
  }
  if (const std::size_t nul = text.find('\0'); nul != std::string::npos) {
    throw config_error(file, mark_at(text, nul), "there is a NUL byte here: this is not a text file");
  }
  if (const auto invalid = first_invalid_utf8(text)) {
    throw config_error(file, mark_at(text, *invalid), "this is not UTF-8", "save the file as UTF-8");
  }
}

bool tab_in_indentation(const std::string& text, int line) {
  std::istringstream lines(text);
  std::string content;
  for (int i = 0; i < line && std::getline(lines, content); ++i) {
  }
  const std::size_t end = content.find_first_not_of(" \t");
  return content.substr(0, end).find('\t') != std::string::npos;
}

// The line of the first syntax error; 0: none.
int line_of_syntax_error(const std::string& text) {
  class Nothing : public YAML::EventHandler {
    void OnDocumentStart(const YAML::Mark& /*mark*/) override {}
    void OnDocumentEnd() override {}
    void OnNull(const YAML::Mark& /*mark*/, YAML::anchor_t /*anchor*/) override {}
    void OnAlias(const YAML::Mark& /*mark*/, YAML::anchor_t /*anchor*/) override {}
    void OnScalar(const YAML::Mark& /*mark*/, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                  const std::string& /*value*/) override {}
    void OnSequenceStart(const YAML::Mark& /*mark*/, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                         YAML::EmitterStyle::value /*style*/) override {}
    void OnSequenceEnd() override {}
    void OnMapStart(const YAML::Mark& /*mark*/, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                    YAML::EmitterStyle::value /*style*/) override {}
    void OnMapEnd() override {}
  } nothing;
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    // yaml-cpp 0.7 returns endless documents after a ',' at the start of a line.
    constexpr int most_documents = 16;
    for (int documents = 0; parser.HandleNextDocument(nothing); ++documents) {
      if (documents == most_documents) {
        return 1;
      }
    }
  } catch (const YAML::Exception& error) {
    return error.mark.is_null() ? 1 : mark_of(error.mark).line;
  }
  return 0;
}

// The start of a quoted value that is not closed on its line: yaml-cpp only reports this at the end of the
// file, or after the next such quote, which it reads as the closing one.
std::optional<Mark> open_quote(const std::string& text, const std::string& found, const Mark& error) {
  const std::vector<std::string> lines = split(text, '\n');
  const auto last = static_cast<std::size_t>(error.line - 1);
  const std::string_view before_error =
      error.line > 0 && last < lines.size()
          ? trim(std::string_view(lines[last]).substr(0, static_cast<std::size_t>(error.column - 1)))
          : std::string_view();
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string& line = lines[i];
    for (std::size_t at = 0; at < line.size() && line[at] != '#'; ++at) {
      const char quote = line[at];
      const char before = at == 0 ? ' ' : line[at - 1];
      if ((quote != '"' && quote != '\'') ||
          std::string_view(" [{,").find(before) == std::string_view::npos) {
        continue;
      }
      const std::size_t begin = at;
      for (++at; at < line.size() && line[at] != quote; ++at) {
        at += quote == '"' && line[at] == '\\' ? 1 : 0;
      }
      if (at >= line.size()) {
        const bool is_it =
            found.find(" in scalar") != std::string::npos || (i < last && before_error.ends_with(quote));
        return is_it ? std::optional(Mark{static_cast<int>(i) + 1, static_cast<int>(begin) + 1})
                     : std::nullopt;
      }
    }
  }
  return std::nullopt;
}

// The start of this line if it is indented further than the line above, which already has a value.
std::optional<Mark> indented_too_far(const std::string& text, int number) {
  const std::vector<std::string> lines = split(text, '\n');
  const auto line = static_cast<std::size_t>(number - 1);
  if (number < 2 || line >= lines.size()) {
    return std::nullopt;
  }
  const std::size_t here = lines[line].find_first_not_of(' ');
  const std::size_t above = lines[line - 1].find_first_not_of(' ');
  const bool has_value = lines[line - 1].find(": ") != std::string::npos;
  return has_value && here != std::string::npos && above != std::string::npos && here > above
             ? std::optional(Mark{number, static_cast<int>(here) + 1})
             : std::nullopt;
}

// Replaces yaml-cpp's message by a reason and a hint if it is not helpful.
Error syntax_error(const YAML::ParserException& error, const std::string& text, const std::string& file) {
  const Mark mark = error.mark.is_null() ? Mark{} : mark_of(error.mark);
  for (int line = mark.line; line >= mark.line - 1 && line >= 1; --line) {
    if (tab_in_indentation(text, line)) {
      return config_error(file, {line, 1}, "a tab in the indentation: YAML allows only spaces",
                          "replace the tabs at the start of the line with spaces");
    }
  }
  if (const auto begin = open_quote(text, error.msg, mark)) {
    return config_error(file, *begin, "a quoted text is not closed", "close the quotes");
  }
  if (const auto missing = find_missing_colon(text, mark.line, line_of_syntax_error)) {
    return config_error(file, missing->mark, missing->reason, missing->hint);
  }
  static const std::map<std::string, std::pair<const char*, const char*>> words = {
      {"illegal map value",
       {"a ':' where no key is allowed",
        "is the line above complete? Put a value that holds ': ' in quotes"}},
      {"end of map not found",
       {"the indentation does not fit the lines above", "lines of one map begin in the same column"}},
      {"end of sequence not found",
       {"the indentation does not fit the list above", "items of one list begin in the same column"}},
      {"end of map flow not found", {"a '{' is not closed, or a ',' is missing", "close it with '}'"}},
      {"end of sequence flow not found", {"a '[' is not closed, or a ',' is missing", "close it with ']'"}},
      {"illegal flow end", {"a '}' or ']' that nothing opened", "put the value in quotes"}},
      {"illegal EOF in scalar", {"a quoted text is not closed", "close the quotes"}},
      {"illegal document indicator in scalar", {"a quoted text is not closed", "close the quotes"}},
      {"unknown token", {"a character that no value may begin with", "put the value in quotes"}},
      {"the referenced anchor is not defined",
       {"this alias refers to nothing above", "name it with & first"}},
      {"unknown escape character: ",
       {"an unknown escape in a \"…\" text", "write \\\\ for a backslash, or use '…' quotes"}},
  };
  const std::string raw = error.msg;
  if (const auto begin = indented_too_far(text, mark.line); begin && raw.starts_with("illegal map value")) {
    return config_error(file, *begin,
                        "this line is indented more than the one above, which has a value already",
                        "begin both in the same column");
  }
  for (const auto& [theirs, ours] : words) {
    if (raw.starts_with(theirs)) {
      return config_error(file, mark, ours.first, ours.second);
    }
  }
  return config_error(file, mark, "not valid YAML: " + printable(raw));
}

}  // namespace

const YamlNode::Entry* YamlNode::find(const std::string& key) const {
  const auto found = std::ranges::find(entries, key, &Entry::key);
  return found != entries.end() ? &*found : nullptr;
}

Error config_error(const std::string& file, Mark mark, const std::string& reason, const std::string& hint) {
  const Error error = Error::usage(fmt::format("{}:{}:{}", file, mark.line, mark.column), reason, hint);
  return hint.empty() ? error.mended_by(Remedy::read_manual, "configs") : error;
}

std::string printable(std::string_view text) {
  constexpr std::size_t longest = 60;
  return visible_line(text, longest);
}

NodePtr read_yaml(const std::string& text, const std::string& file) {
  if (text.size() > max_config_bytes) {
    throw Error::usage(file, "the file is too large: more than 1 MiB",
                       "is this the right file? Thousands of servers fit in it");
  }
  check_bytes(text, file);
  TreeBuilder builder(file);
  try {
    // yaml-cpp accepts an unclosed quoted string if the file ends with a newline.
    std::istringstream stream(text.substr(0, text.find_last_not_of(" \t\r\n") + 1));
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::ParserException& error) {
    throw syntax_error(error, text, file);
  } catch (const YAML::Exception& error) {
    throw config_error(file, mark_of(error.mark), "not valid YAML: " + printable(error.msg));
  }
  return builder.root() ? builder.root() : std::make_shared<const YamlNode>();
}

}  // namespace remote::config
