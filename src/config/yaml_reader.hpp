#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <remote/error.hpp>

// YAML text as a tree of nodes that know their line and column. yaml-cpp does the parsing; the tree is ours
// because yaml-cpp's own drops a key that is given twice, has no mark on a key, and does not bound what it
// builds. All exceptions of yaml-cpp end here.

namespace remote::config {

// A place in the file, counted from 1.
struct Mark {
  int line = 1;
  int column = 1;
};

// "FILE:LINE:COLUMN: reason", wrong configuration. Without a hint it names the page of the manual.
Error config_error(const std::string& file, Mark mark, const std::string& reason,
                   const std::string& hint = {});

// A text of the file fit for a message: control characters made visible, at most 60 characters.
std::string printable(std::string_view text);

struct YamlNode;
using NodePtr = std::shared_ptr<const YamlNode>;

struct YamlNode {
  enum class Kind { null, scalar, list, map };
  // One "key: value" of a map, in the order of the file. Keys are unique.
  struct Entry {
    std::string key;
    Mark mark;  // of the key
    NodePtr value;
  };
  Kind kind = Kind::null;
  Mark mark;
  std::string text;            // scalar: exactly as written, quotes taken off ("3.10" stays "3.10")
  std::vector<NodePtr> items;  // list
  std::vector<Entry> entries;  // map; "<<" (merge) is already carried out
  const Entry* find(const std::string& key) const;
};

// What a configuration file may hold at most. An alias shares its node and is never copied, so that nested
// aliases cost nothing.
inline constexpr std::size_t max_config_bytes = std::size_t{1} << 20U;
inline constexpr std::size_t max_config_nodes = 100'000;
inline constexpr std::size_t max_config_depth = 32;

// Throws Error (usage) "FILE:LINE:COLUMN: …". Empty text is a null node.
NodePtr read_yaml(const std::string& text, const std::string& file);

}  // namespace remote::config
