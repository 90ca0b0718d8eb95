#include "cli/given_file.hpp"

#include <remote/error.hpp>

#include "base/files.hpp"

namespace remote::cli {

std::string read_given_file(const std::string& option, const std::filesystem::path& file) {
  try {
    return read_file(file);
  } catch (const Error& error) {
    throw Error::usage(option + ": " + error.what_failed(), error.reason(), error.hint());
  }
}

}  // namespace remote::cli
