#include "agent/launch/checkpoints.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "agent/host/matches.hpp"
#include "base/strings.hpp"
#include "wire/link.hpp"
#include "wire/text.hpp"

namespace remote::agent {
namespace {

constexpr std::size_t most_matches = 1'000'000;
constexpr std::size_t most_checkpoint_bytes = 8000;  // of all names in a message

struct Checkpoint {
  std::pair<time_t, long> completed;
  std::string name;

  // NOLINTNEXTLINE(modernize-use-nullptr): false positive of clang-tidy 14
  friend auto operator<=>(const Checkpoint&, const Checkpoint&) = default;
};

// Splits a path into its components. Returns nullopt if it leaves the project.
std::optional<std::vector<std::string>> split_inside_path(std::string_view path) {
  std::vector<std::string> parts = split(path, '/');
  std::erase_if(parts, [](const std::string& part) { return part.empty() || part == "."; });
  const bool leaves = path.starts_with('/') || std::ranges::find(parts, "..") != parts.end();
  return leaves ? std::nullopt : std::optional(std::move(parts));
}

std::string_view drop_last_slashes(std::string_view path) {
  return path.substr(0, path.find_last_not_of('/') + 1);
}

// Returns whether the path fits a line of the file `attempt` and a message to the coordinator.
bool is_message_line(std::string_view path) {
  if (path.size() > wire::max_checkpoint_name || path.find('\n') != std::string_view::npos) {
    return false;
  }
  while (!path.empty()) {
    const wire::Character character = wire::first_character(path);
    if (character.code == 0xfffd && character.size == 1) {
      return false;  // not UTF-8
    }
    path.remove_prefix(character.size);
  }
  return true;
}

class CheckpointSearch {
 public:
  CheckpointSearch(const Path& project, const wire::RestartSpec& spec)
      : project_(project),
        files_(drop_last_slashes(spec.checkpoint_files)),
        complete_(spec.checkpoint_complete) {}

  // `folder` is a pattern.
  void search(const std::string& folder) {
    auto parts = split_inside_path(folder);
    const auto files = split_inside_path(files_);
    if (!parts || !files || files->empty()) {
      return;
    }
    parts->insert(parts->end(), files->begin(), files->end());
    for (const std::string& path : find_matches(project_, join(*parts, "/"), most_matches)) {
      add(path);
    }
  }
  std::vector<Checkpoint> take() { return std::move(found_); }

 private:
  void add(const std::string& path) {
    const std::size_t begin = path.rfind('/') + 1;  // of the name
    const std::string name = path.substr(begin);
    const std::string marker = find_marker(name, files_, complete_);
    if (marker.empty() || !is_message_line(path)) {
      return;
    }
    if (const auto info = look_at(project_ / (path.substr(0, begin) + marker))) {
      found_.push_back({{info->st_mtim.tv_sec, info->st_mtim.tv_nsec}, path});
    }
  }

  const Path& project_;
  std::string files_;
  std::string complete_;
  std::vector<Checkpoint> found_;
};

}  // namespace

std::string find_marker(std::string_view name, std::string_view files, std::string_view complete) {
  const std::size_t star = files.find('*');
  if (star == std::string_view::npos) {
    return name == files ? std::string(complete) : "";
  }
  const std::string_view before = files.substr(0, star);
  const std::string_view after = files.substr(star + 1);
  if (name.size() < before.size() + after.size() || !name.starts_with(before) || !name.ends_with(after)) {
    return "";
  }
  const std::string_view same = name.substr(before.size(), name.size() - before.size() - after.size());
  std::string marker(complete);
  if (const std::size_t at = marker.find('*'); at != std::string::npos) {
    marker.replace(at, 1, same);
  }
  return marker;
}

std::vector<std::string> find_checkpoints(const Path& project, const wire::RestartSpec& spec) {
  if (spec.checkpoint_files.empty() || spec.checkpoint_complete.empty()) {
    return {};
  }
  CheckpointSearch search(project, spec);
  search.search("");
  for (const std::string& folder : spec.checkpoint_folders) {
    search.search(folder);
  }
  std::vector<Checkpoint> found = search.take();
  std::sort(found.begin(), found.end(), std::greater<>());
  std::vector<std::string> names;
  std::size_t bytes = 0;
  for (Checkpoint& checkpoint : found) {
    bytes += checkpoint.name.size();
    if (names.size() == wire::max_checkpoints || bytes > most_checkpoint_bytes) {
      break;
    }
    names.push_back(std::move(checkpoint.name));
  }
  return names;
}

}  // namespace remote::agent
