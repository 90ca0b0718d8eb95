#include "agent/tree/tree_list.hpp"

#include <optional>
#include <stdexcept>

#include "base/strings.hpp"

namespace remote::agent {
namespace {

constexpr std::int64_t ns_per_second = 1'000'000'000;

bool leads_out(const std::string& name) {
  return name.starts_with('/') || ("/" + name + "/").find("/../") != std::string::npos;
}

void add_to_folders(TreeList& list, const std::string& name) {
  std::string entry = name;
  while (list.entries.insert(entry).second) {
    const std::size_t slash = entry.rfind('/');
    entry.resize(slash == std::string::npos ? 0 : slash);
    list.folders.insert(entry);
    if (entry.empty()) {
      break;
    }
  }
}

}  // namespace

TreeList parse_tree_list(std::string_view text) {
  TreeList list;
  list.folders.insert("");
  for (std::size_t end = 0; (end = text.find('\0')) != std::string_view::npos; text.remove_prefix(end + 1)) {
    const std::string_view line = text.substr(0, end);
    const std::size_t first = line.find(' ');
    const std::size_t second = first == std::string_view::npos ? first : line.find(' ', first + 1);
    if (second == std::string_view::npos || second + 1 == line.size()) {
      throw std::runtime_error("the list of files is damaged");
    }
    const auto size = parse_number<std::int64_t>(line.substr(0, first));
    const auto time = parse_number<std::int64_t>(line.substr(first + 1, second - first - 1));
    std::string name(line.substr(second + 1));
    if (!size || !time) {
      throw std::runtime_error("the list of files is damaged");
    }
    if (leads_out(name)) {
      throw std::runtime_error("the list of files has a name that leads out of the project");
    }
    add_to_folders(list, name);
    list.files.push_back(
        {std::move(name), *size, *time / ns_per_second - (*time % ns_per_second < 0 ? 1 : 0)});
  }
  return list;
}

bool is_as_sent(const Path& path, const TreeFile& file) {
  const auto info = look_at_entry(path);
  return info && S_ISREG(info->st_mode) && info->st_size == file.size && info->st_mtim.tv_sec == file.seconds;
}

std::string join_name(const std::string& folder, const std::string& name) {
  return folder + (folder.empty() || name.empty() ? "" : "/") + name;
}

}  // namespace remote::agent
