#include "config/edit_servers.hpp"

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include <remote/error.hpp>

#include "base/strings.hpp"
#include "config/config.hpp"
#include "config/init_templates.hpp"
#include "config/yaml_reader.hpp"

namespace remote::config {
namespace fs = std::filesystem;
namespace {

using Kind = YamlNode::Kind;
using Keys = std::vector<std::pair<std::string, std::string>>;  // with their values in YAML

Error cannot_edit(const fs::path& project) {
  return Error::usage("cannot change " + (project / ".remote/configs.yaml").string(),
                      "its 'servers' are written in a way that only a person can change",
                      "edit the file: name the server, its hostname, port and username there");
}

// ---- Settings that must not change

bool is_same(const YamlNode& one, const YamlNode& other) {
  const auto same_item = [](const NodePtr& a, const NodePtr& b) { return is_same(*a, *b); };
  const auto same_entry = [](const YamlNode::Entry& a, const YamlNode::Entry& b) {
    return a.key == b.key && is_same(*a.value, *b.value);
  };
  return one.kind == other.kind && one.text == other.text &&
         std::ranges::equal(one.items, other.items, same_item) &&
         std::ranges::equal(one.entries, other.entries, same_entry);
}

// Returns the settings without these keys of a server; without the whole server if `keys` is empty.
YamlNode without(const YamlNode& root, const std::string& server, const Keys& keys) {
  YamlNode rest = root;
  rest.kind = Kind::map;
  for (YamlNode::Entry& top : rest.entries) {
    if (top.key != "servers") {
      continue;
    }
    auto servers = std::make_shared<YamlNode>();
    servers->kind = Kind::map;
    for (YamlNode::Entry entry : top.value->entries) {
      if (entry.key == server && keys.empty()) {
        continue;
      }
      if (entry.key == server) {
        auto fields = std::make_shared<YamlNode>(*entry.value);
        std::erase_if(fields->entries, [&](const YamlNode::Entry& field) {
          return std::ranges::count(keys, field.key, &Keys::value_type::first) > 0;
        });
        entry.value = fields;
      }
      servers->entries.push_back(entry);
    }
    top.value = servers;
  }
  std::erase_if(rest.entries, [](const YamlNode::Entry& top) {
    return top.key == "servers" && top.value->entries.empty();
  });
  return rest;
}

// ---- Positions in the text

class Source {
 public:
  Source(std::string content, const fs::path& project)
      : text(std::move(content)),
        root(read_yaml(text, (project / ".remote/configs.yaml").string())),
        project_(project) {
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '\n') {
        starts_.push_back(i + 1);
      }
    }
  }

  const YamlNode::Entry* servers() const { return root->kind == Kind::map ? root->find("servers") : nullptr; }
  const YamlNode::Entry* server(const std::string& name) const {
    const YamlNode::Entry* all = servers();
    return all != nullptr && all->value->kind == Kind::map ? all->value->find(name) : nullptr;
  }
  std::size_t offset(const Mark& mark) const {
    const auto line = static_cast<std::size_t>(mark.line - 1);
    const std::size_t at =
        line < starts_.size() ? starts_[line] + static_cast<std::size_t>(mark.column - 1) : std::string::npos;
    if (at >= text.size()) {
      throw cannot_edit(project_);
    }
    return at;
  }
  std::size_t line_end(std::size_t at) const { return std::min(text.find('\n', at), text.size()); }
  std::size_t line_start(const Mark& mark) const {
    return starts_.at(static_cast<std::size_t>(mark.line - 1));
  }
  bool is_flow(const YamlNode& node) const { return text[offset(node.mark)] == '{'; }

  // Returns the end of the scalar that starts at `at`.
  std::size_t scalar_end(std::size_t at, bool in_flow) const {
    const char quote = text[at];
    if (quote == '"' || quote == '\'') {
      for (std::size_t i = at + 1; i < text.size(); ++i) {
        const bool is_escaped = quote == '"' ? text[i] == '\\' : text.substr(i, 2) == "''";
        if (is_escaped) {
          ++i;
        } else if (text[i] == quote) {
          return i + 1;
        }
      }
      throw cannot_edit(project_);
    }
    std::size_t end = at;
    while (end < text.size() && text[end] != '\n' && text[end] != '\r' &&
           !(text[end] == '#' && (text[end - 1] == ' ' || text[end - 1] == '\t')) &&
           !(in_flow && (text[end] == ',' || text[end] == '}'))) {
      ++end;
    }
    while (end > at && (text[end - 1] == ' ' || text[end - 1] == '\t')) {
      --end;
    }
    return end;
  }
  // Returns the position after the bracket that closes the one at `at`.
  std::size_t flow_end(std::size_t at) const {
    int depth = 0;
    for (std::size_t i = at; i < text.size(); ++i) {
      const char c = text[i];
      if (c == '"' || (c == '\'' && (text[i - 1] == ' ' || text[i - 1] == '{' || text[i - 1] == '['))) {
        i = scalar_end(i, true) - 1;
      } else if (c == '#' && (text[i - 1] == ' ' || text[i - 1] == '\n')) {
        i = line_end(i);
      } else if (c == '{' || c == '[') {
        ++depth;
      } else if ((c == '}' || c == ']') && --depth == 0) {
        return i + 1;
      }
    }
    throw cannot_edit(project_);
  }
  std::size_t value_end(const YamlNode& value, bool in_flow) const {
    const std::size_t at = offset(value.mark);
    return text[at] == '{' || text[at] == '[' ? flow_end(at) : scalar_end(at, in_flow);
  }

  // Returns the end of the lines that belong to the entry at `from`; at most `end`, which is the start of a
  // line. Empty lines and comments that are not indented more than `indent` belong to the next entry.
  std::size_t own_lines_end(std::size_t from, std::size_t end, std::size_t indent) const {
    for (auto line = std::ranges::lower_bound(starts_, end); line != starts_.begin();) {
      --line;
      if (*line <= from) {
        break;
      }
      const std::string_view content = std::string_view(text).substr(*line, end - *line);
      const std::size_t first = content.find_first_not_of(" \t\r\n");
      if (first != std::string_view::npos && (content[first] != '#' || first > indent)) {
        break;
      }
      end = *line;
    }
    return end;
  }
  // Returns the end of the `servers:` block.
  std::size_t servers_end() const {
    std::size_t end = text.size();
    const int own = servers()->mark.line;
    for (const YamlNode::Entry& top : root->entries) {
      if (top.mark.line > own) {
        end = std::min(end, line_start(top.mark));
      }
    }
    return own_lines_end(line_start(servers()->mark), end, 0);
  }

  std::string text;
  NodePtr root;

 private:
  const fs::path& project_;
  std::vector<std::size_t> starts_{0};
};

// ---- Changes

std::string set_key(std::string text, const fs::path& project, const std::string& name,
                    const Keys::value_type& key) {
  Source source(std::move(text), project);
  const YamlNode& fields = *source.server(name)->value;
  const YamlNode::Entry* field = fields.kind == Kind::map ? fields.find(key.first) : nullptr;
  const YamlNode::Entry* hostname = fields.kind == Kind::map ? fields.find("hostname") : nullptr;
  if (hostname == nullptr || (field != nullptr && field->value->kind != Kind::scalar)) {
    throw cannot_edit(project);
  }
  const bool in_flow = source.is_flow(fields);
  if (field != nullptr) {
    const std::size_t at = source.offset(field->value->mark);
    source.text.replace(at, source.scalar_end(at, in_flow) - at, key.second);
    return std::move(source.text);
  }
  const std::size_t end = source.value_end(*hostname->value, in_flow);
  if (in_flow) {
    source.text.insert(end, ", " + key.first + ": " + key.second);
  } else {
    source.text.insert(source.line_end(end),
                       "\n" + std::string(static_cast<std::size_t>(hostname->mark.column - 1), ' ') +
                           key.first + ": " + key.second);
  }
  return std::move(source.text);
}

std::string block_of(const std::string& name, const Keys& keys, std::size_t indent, std::size_t inner) {
  std::string block = std::string(indent, ' ') + yaml_text(name) + ":\n";
  for (const auto& [key, value] : keys) {
    block += std::string(inner, ' ') + key + ": " + value + "\n";
  }
  return block;
}

std::string flow_of(const std::string& name, const Keys& keys) {
  std::vector<std::string> parts;
  for (const auto& [key, value] : keys) {
    parts.push_back(key + ": " + value);
  }
  return yaml_text(name) + ": {" + join(parts, ", ") + "}";
}

std::string add_server(std::string content, const fs::path& project, const std::string& name,
                       const Keys& keys) {
  Source source(std::move(content), project);
  std::string& text = source.text;
  const YamlNode::Entry* servers = source.servers();
  const std::string block = block_of(name, keys, 2, 4);
  if (servers == nullptr) {
    text += (text.empty() || text.ends_with('\n') ? "" : "\n") + std::string("servers:\n") + block;
  } else if (const std::size_t example = text.find(config_server_example);
             servers->value->kind == Kind::null && example != std::string::npos) {
    text.replace(example, config_server_example.size(), "servers:\n" + block);
  } else if (servers->value->kind == Kind::null) {
    const std::size_t end = source.line_end(source.offset(servers->mark));
    text.insert(end, "\n" + block.substr(0, block.size() - 1));
  } else if (servers->value->entries.empty()) {  // "{}" or "[]"
    const std::size_t at = source.offset(servers->value->mark);
    const std::size_t begin = text.find_last_not_of(' ', at - 1) + 1;
    text.replace(begin, source.flow_end(at) - begin, "\n" + block.substr(0, block.size() - 1));
  } else if (source.is_flow(*servers->value)) {
    text.insert(source.value_end(*servers->value->entries.back().value, true), ", " + flow_of(name, keys));
  } else {
    const YamlNode::Entry& first = servers->value->entries.front();
    const auto indent = static_cast<std::size_t>(first.mark.column - 1);
    const bool in_block = first.value->kind == Kind::map && !first.value->entries.empty() &&
                          first.value->entries.front().mark.line > first.mark.line;
    const std::size_t inner =
        in_block ? static_cast<std::size_t>(first.value->entries.front().mark.column - 1) : indent + 2;
    const std::size_t end = source.servers_end();
    text.insert(end, (end > 0 && text[end - 1] != '\n' ? "\n" : "") +
                         block_of(name, keys, indent, std::max(inner, indent + 1)));
  }
  return std::move(text);
}

// Compares the new settings with the old ones, and parses the new text: other settings may refer to a removed
// server.
Config check(const std::string& old, const std::string& text, const fs::path& project,
             const std::string& name, const Keys& keys) {
  const std::string file = (project / ".remote/configs.yaml").string();
  bool same = false;
  try {
    same = is_same(without(*read_yaml(old, file), name, keys), without(*read_yaml(text, file), name, keys));
  } catch (const Error&) {
    same = false;  // the new text is invalid YAML
  }
  if (!same) {
    throw cannot_edit(project);
  }
  return parse(text, project);
}

}  // namespace

EditedConfig put_server(const std::string& text, const fs::path& project, const NewServer& server) {
  const Source source(text, project);
  const YamlNode::Entry* entry = source.server(server.name);
  const bool is_new = entry == nullptr;
  Keys keys{{"hostname", yaml_text(server.hostname)}};
  if (server.port || (!is_new && entry->value->find("port") != nullptr)) {
    keys.emplace_back("port", std::to_string(server.port.value_or(22)));
  }
  for (const auto& [key, value] : {std::pair("username", server.username),
                                   {"private_key", server.private_key},
                                   {"proxy_jump", server.proxy_jump}}) {
    if (value) {
      keys.emplace_back(key, yaml_text(*value));
    }
  }
  EditedConfig result{.text = text, .is_new = is_new};
  if (is_new) {
    result.text = add_server(text, project, server.name, keys);
  } else {
    for (const Keys::value_type& key : keys) {
      result.text = set_key(std::move(result.text), project, server.name, key);
    }
  }
  const Config config = check(text, result.text, project, server.name, is_new ? Keys() : keys);
  const auto found = std::ranges::find(config.servers, server.name, &Server::name);
  if (found == config.servers.end() || found->hostname != server.hostname ||
      found->port.value_or(22) != server.port.value_or(22) ||
      (server.username && found->username != server.username)) {
    throw cannot_edit(project);
  }
  return result;
}

std::string remove_server(const std::string& content, const fs::path& project, const std::string& name) {
  Source source(content, project);
  const YamlNode::Entry* entry = source.server(name);
  if (entry == nullptr) {
    std::vector<std::string> names;
    if (const YamlNode::Entry* servers = source.servers()) {
      std::ranges::transform(servers->value->entries, std::back_inserter(names), &YamlNode::Entry::key);
    }
    throw Error::usage("there is no server '" + printable(name) + "'",
                       names.empty() ? "configs.yaml has none" : "configs.yaml has " + join(names, ", "),
                       did_you_mean(name, names));
  }
  std::string& text = source.text;
  const YamlNode& servers = *source.servers()->value;
  if (source.is_flow(servers)) {
    std::size_t begin = source.offset(entry->mark);
    std::size_t end = source.value_end(*entry->value, true);
    const std::size_t next = text.find_first_not_of(" \t\r\n", end);
    if (next != std::string::npos && text[next] == ',') {
      end = std::min(text.find_first_not_of(" \t\r\n", next + 1), text.size());
    } else if (const std::size_t comma = text.find_last_not_of(" \t\r\n", begin - 1);
               comma != std::string::npos && text[comma] == ',') {
      begin = comma;
    }
    text.erase(begin, end - begin);
  } else {
    const std::size_t begin = source.line_start(entry->mark);
    std::size_t end = source.servers_end();
    for (const YamlNode::Entry& other : servers.entries) {
      if (other.mark.line > entry->mark.line) {
        end = std::min(end, source.line_start(other.mark));
      }
    }
    end = source.own_lines_end(begin, end, static_cast<std::size_t>(entry->mark.column - 1));
    text.erase(begin, end - begin);
  }
  check(content, text, project, name, {});
  return std::move(text);
}

}  // namespace remote::config
