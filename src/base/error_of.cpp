#include "base/error_of.hpp"

#include <filesystem>
#include <system_error>

#include "base/files.hpp"

namespace remote {

Error error_of(const std::exception& exception) {
  if (const auto* error = dynamic_cast<const Error*>(&exception)) {
    return *error;
  }
  if (const auto* error = dynamic_cast<const std::filesystem::filesystem_error*>(&exception)) {
    return file_error("use", error->path1(), error->code().value());
  }
  if (const auto* error = dynamic_cast<const std::system_error*>(&exception)) {
    return Error("this machine does not allow it", error->code().message(),
                 "end other programs, and try again");
  }
  return Error("unexpected error", exception.what()).mended_by(Remedy::report_bug);
}

}  // namespace remote
