#include "base/error_of.hpp"

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "base/files.hpp"

namespace remote {

Cause cause_of(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return Cause::disk_full;
    case EACCES:
    case EPERM:
    case EROFS:
      return Cause::permission;
    case ENOENT:
    case ENOTDIR:
      return Cause::not_found;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case EAGAIN:
      return Cause::no_resources;
    case ECONNREFUSED:
      return Cause::refused;
    case ETIMEDOUT:
      return Cause::timeout;
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ECONNRESET:
    case EPIPE:
      return Cause::unreachable;
    default:
      return Cause::other;
  }
}

Error error_of(const std::exception& exception) {
  if (const auto* error = dynamic_cast<const Error*>(&exception)) {
    return *error;
  }
  if (const auto* error = dynamic_cast<const std::filesystem::filesystem_error*>(&exception)) {
    return file_error("use", error->path1(), error->code().value());
  }
  if (const auto* error = dynamic_cast<const std::system_error*>(&exception)) {
    if (error->code() == std::errc::resource_unavailable_try_again) {
      return Error("cannot start a thread", error->code().message(),
                   "stop other programs, or raise the limit of processes (ulimit -u)")
          .because(Cause::no_resources);
    }
    return Error("this machine does not allow it", error->code().message(),
                 "stop other programs, and try again")
        .because(cause_of(error->code().value()));
  }
  return Error("unexpected error", exception.what()).mended_by(Remedy::report_bug);
}

}  // namespace remote
