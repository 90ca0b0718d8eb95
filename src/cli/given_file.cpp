#include "cli/given_file.hpp"

#include <cerrno>

#include <remote/error.hpp>

#include "base/beneath.hpp"
#include "base/paths.hpp"
#include "config/config.hpp"

namespace remote::cli {
namespace {

constexpr std::uintmax_t most_bytes = std::uintmax_t{256} << 20U;

// A file in a project may be a link created by its author, and its contents may be sent to a server.
std::string read_given(const std::filesystem::path& file) {
  const std::filesystem::path whole = absolute_path(file).lexically_normal();
  const auto project = config::nearest_project(whole.parent_path());
  if (!project) {
    return read_file(file);
  }
  if (auto text = read_beneath(*project, whole, most_bytes)) {
    return std::move(*text);
  }
  throw file_error("read", file, ENOENT);
}

}  // namespace

std::string read_given_file(const std::string& option, const std::filesystem::path& file) {
  try {
    return decode_text(read_given(file), file);
  } catch (const Error& error) {
    throw Error::usage(option + ": " + error.what_failed(), error.reason(), error.hint());
  }
}

}  // namespace remote::cli
