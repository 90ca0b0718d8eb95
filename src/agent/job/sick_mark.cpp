#include "agent/job/sick_mark.hpp"

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>

#include <unistd.h>

#include "agent/job/record.hpp"

namespace remote::agent {

wire::ClearSickMarkReply clear_sick_mark(const Host& host, const wire::ClearSickMarkRequest& request) {
  const Path mark = JobsFolder::of(host, request.place).jobs / ".sick";
  if (::unlink(mark.c_str()) != 0 && errno != ENOENT && errno != ENOTDIR) {
    throw std::runtime_error("cannot remove " + mark.string() + ": " + ::strerror(errno));
  }
  return {};
}

}  // namespace remote::agent
