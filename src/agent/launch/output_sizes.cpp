#include "agent/launch/output_sizes.hpp"

#include <string_view>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/host/descriptor.hpp"

namespace remote::agent {
namespace {

constexpr std::string_view dump_line = "ProcessGroupNCCL preparing to dump debug info";
constexpr std::uint64_t most_logged =
    65536;  // between two samples; anything beyond that is output of the rank

std::string read_part(const Path& file, std::uint64_t begin, std::uint64_t size) {
  const Descriptor opened(::open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  std::string text(size, '\0');
  const ssize_t count =
      opened ? ::pread(opened.get(), text.data(), text.size(), static_cast<off_t>(begin)) : -1;
  text.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  return text;
}

std::uint64_t count_dump_bytes(std::string_view text) {
  std::uint64_t bytes = 0;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n') + 1);
    const std::size_t length = line.empty() ? text.size() : line.size();  // the last line may be incomplete
    if (text.substr(0, length).find(dump_line) != std::string_view::npos) {
      bytes += length;
    }
    text.remove_prefix(length);
  }
  return bytes;
}

}  // namespace

std::optional<std::uint64_t> OutputSizes::measure(const Path& file) {
  const auto info = look_at(file);
  if (!info) {
    return std::nullopt;
  }
  const auto size = static_cast<std::uint64_t>(info->st_size);
  Known& known = known_.try_emplace(file.string(), Known{size, 0}).first->second;
  if (size > known.size && size - known.size <= most_logged) {
    known.of_dumps += count_dump_bytes(read_part(file, known.size, size - known.size));
  }
  known.size = size;
  return size - known.of_dumps;
}

}  // namespace remote::agent
