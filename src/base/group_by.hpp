#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <type_traits>
#include <vector>

namespace remote {

// The indices of the items with the same key.
template <typename Key>
struct Group {
  Key key;
  std::vector<std::size_t> indices;
};

// Groups items by the result of `key_of`, a std::optional; nullopt skips an item. The groups are in the order
// of their first items.
template <typename Item, typename KeyOf>
auto group_by(const std::vector<Item>& items, const KeyOf& key_of) {
  using Key = typename std::remove_cvref_t<std::invoke_result_t<KeyOf, const Item&>>::value_type;
  std::vector<Group<Key>> groups;
  for (std::size_t i = 0; i < items.size(); ++i) {
    std::optional<Key> key = key_of(items[i]);
    if (!key) {
      continue;
    }
    auto group = std::ranges::find(groups, *key, &Group<Key>::key);
    if (group == groups.end()) {
      group = groups.insert(groups.end(), {std::move(*key), {}});
    }
    group->indices.push_back(i);
  }
  return groups;
}

}  // namespace remote
