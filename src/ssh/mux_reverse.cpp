#include "ssh/mux_reverse.hpp"

#include <cerrno>
#include <cstdint>
#include <string>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <remote/error.hpp>
#include <sys/socket.h>

#include "ssh/local_socket.hpp"
#include "ssh/mux_socket.hpp"

namespace remote::ssh {
namespace {

constexpr std::uint32_t forward_id = 2;

void prepare(const UniqueFd& fd) {
  ::fcntl(fd.get(), F_SETFD, FD_CLOEXEC);
  ::fcntl(fd.get(), F_SETFL, O_NONBLOCK);
}

}  // namespace

MuxReverse::MuxReverse(const std::filesystem::path& control, mux::Listening at,
                       std::chrono::milliseconds limit, const Cancel& cancel)
    : control_(control), at_(std::move(at)), folder_("remote-reverse-") {
  const std::string path = (folder_.path() / "socket").string();
  constexpr const char* what = "cannot forward a port to this machine";
  listener_ = listen_local(path, SOMAXCONN);
  if (!listener_) {
    throw Error(what, std::generic_category().message(errno), "does TMPDIR, or /tmp, have space?");
  }
  prepare(listener_);
  mux::ControlSocket socket(control_);
  socket.send(mux::open_reverse(forward_id, at_, path));
  const auto answer = socket.wait(limit, cancel);
  if (!answer || answer->kind != mux::Kind::ok || answer->about != forward_id) {
    throw Error(what,
                answer ? "the server does not listen on its port " + std::to_string(at_.port)
                       : std::string("the OpenSSH master does not answer"),
                "the port is taken there, or AllowTcpForwarding in its sshd_config forbids it")
        .because(Cause::refused);
  }
}

MuxReverse::~MuxReverse() {
  try {
    mux::ControlSocket socket(control_);
    socket.send(mux::close_reverse(forward_id, at_, (folder_.path() / "socket").string()));
    socket.wait(mux::local_limit);
  } catch (const Error&) {  // the master is gone, and so is the port
  }
}

UniqueFd MuxReverse::accept() {
  UniqueFd fd(::accept(listener_.get(), nullptr, nullptr));
  if (fd) {
    prepare(fd);
  }
  return fd;
}

}  // namespace remote::ssh
