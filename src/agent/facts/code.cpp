#include "agent/facts/code.hpp"

#include <cstdint>
#include <optional>
#include <string>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/strings.hpp"

namespace remote::agent {
namespace {

constexpr std::size_t longest_name = 4096;
constexpr std::size_t most_bytes_of_names = std::size_t{512} << 10U;

using Stamp = wire::ChangedFile::Stamp;

struct ListedFile {
  Stamp stamp;
  std::string name;
};

std::optional<ListedFile> read_listed_file(std::string_view line) {
  const std::size_t first = line.find(' ');
  const std::size_t second = first == std::string_view::npos ? first : line.find(' ', first + 1);
  if (second == std::string_view::npos || second + 1 == line.size()) {
    return std::nullopt;
  }
  const auto size = parse_number<std::uint64_t>(line.substr(0, first));
  const auto seconds = parse_number<std::int64_t>(line.substr(first + 1, second - first - 1));
  if (!size || !seconds) {
    return std::nullopt;
  }
  return ListedFile{{*size, *seconds}, std::string(line.substr(second + 1))};
}

// nullopt: missing.
std::optional<Stamp> read_stamp(int folder, const std::string& name) {
  struct stat info {};
  if (folder < 0 || ::fstatat(folder, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
    return std::nullopt;
  }
  return Stamp{static_cast<std::uint64_t>(info.st_size), info.st_mtim.tv_sec};
}

}  // namespace

wire::CodeFacts compare_files(const Path& project, std::string_view listed) {
  wire::CodeFacts facts;
  std::size_t bytes = 0;
  const int folder = ::open(project.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  while (!listed.empty()) {
    const std::size_t end = listed.find('\n');
    const std::optional<ListedFile> file = read_listed_file(listed.substr(0, end));
    listed.remove_prefix(end == std::string_view::npos ? listed.size() : end + 1);
    if (!file) {
      continue;
    }
    const std::optional<Stamp> here = read_stamp(folder, file->name);
    if (here == file->stamp) {
      continue;
    }
    ++facts.count;
    if (facts.files.size() < wire::CodeFacts::most_files && file->name.size() <= longest_name &&
        bytes + file->name.size() <= most_bytes_of_names) {
      bytes += file->name.size();
      facts.files.push_back({file->name, here});
    }
  }
  if (folder >= 0) {
    ::close(folder);
  }
  return facts;
}

}  // namespace remote::agent
