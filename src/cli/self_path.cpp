#include "cli/self_path.hpp"

#include <string>

#ifdef __APPLE__
#include <mach-o/dyld.h>
#endif

#include <remote/error.hpp>

namespace remote::cli {
namespace fs = std::filesystem;

fs::path self_path() {
#ifdef __APPLE__
  std::uint32_t size = 0;
  ::_NSGetExecutablePath(nullptr, &size);  // says how much it needs
  std::string buffer(size, '\0');
  if (::_NSGetExecutablePath(buffer.data(), &size) != 0) {
    throw Error("cannot find this program's own file", "the system does not tell");
  }
  std::error_code error;
  fs::path path = fs::canonical(buffer.c_str(), error);
#else
  std::error_code error;
  fs::path path = fs::read_symlink("/proc/self/exe", error);
#endif
  if (error) {
    throw Error("cannot find this program's own file", error.message());
  }
  return path;
}

}  // namespace remote::cli
