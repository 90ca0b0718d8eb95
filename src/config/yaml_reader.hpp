#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <remote/error.hpp>

// A tree of YAML nodes that know their line and column. yaml-cpp does the parsing, but its own tree drops
// repeated keys, has no positions of keys, and has no size limit. No exceptions of yaml-cpp leave this
// module.

namespace remote::config {

// A position in the file; line and column count from 1.
struct Mark {
  int line = 1;
  int column = 1;
};

// A configuration error "FILE:LINE:COLUMN: reason". Without a hint, it names the page of the manual.
Error config_error(const std::string& file, Mark mark, const std::string& reason,
                   const std::string& hint = {});

// Text from the file for use in a message: control characters are escaped, at most 60 characters.
std::string printable(std::string_view text);

struct YamlNode;
using NodePtr = std::shared_ptr<const YamlNode>;

struct YamlNode {
  enum class Kind { null, scalar, list, map };
  // A "key: value" of a map. Entries are in file order, keys are unique.
  struct Entry {
    std::string key;
    Mark mark;  // of the key
    NodePtr value;
  };
  Kind kind = Kind::null;
  Mark mark;
  std::string text;            // for a scalar: exactly as written, without quotes ("3.10" stays "3.10")
  std::vector<NodePtr> items;  // for a list
  std::vector<Entry> entries;  // for a map; "<<" (merge) is already resolved
  const Entry* find(const std::string& key) const;
};

// Limits for a configuration file. Aliases share their node and are never copied, so that nested aliases cost
// nothing.
inline constexpr std::size_t max_config_bytes = std::size_t{1} << 20U;
inline constexpr std::size_t max_config_nodes = 100'000;
inline constexpr std::size_t max_config_depth = 32;

// Throws Error (usage) "FILE:LINE:COLUMN: …". Empty text is a null node.
NodePtr read_yaml(const std::string& text, const std::string& file);

}  // namespace remote::config
