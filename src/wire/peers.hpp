#pragma once

#include <optional>
#include <string>
#include <vector>

#include "wire/jobs.hpp"

// A server copies the project from another one (`rsync --fan-out peers`).

namespace remote::wire {

// Runs rsync. The names of the requested files follow as data, each terminated by NUL.
struct PullProjectRequest {
  static constexpr std::string_view kind = "pull_project";

  std::string project;  // the project's folder on this server
  std::string work;     // a folder that is created, and removed at the end
  std::string host;     // the other server's, like the next ones
  int port = 22;
  std::string user;
  std::string host_key;  // "ssh-ed25519 AAAA...", checked by the client
  std::string path;      // the project's path there, as an argument of rsync
  std::vector<std::string> arguments{};
  bool only_probe = false;  // only test the login
  std::string
      agent_socket{};  // the socket of the forwarded SSH agent, removed at the end; "": SSH_AUTH_SOCK is set

  static constexpr auto fields() {
    using R = PullProjectRequest;
    return field_list(field("project", &R::project, at_most(4096)), field("work", &R::work, at_most(4096)),
                      field("host", &R::host, a_line(4096)), field("port", &R::port, in_range(1, 65535)),
                      field("user", &R::user, a_line(4096)), field("host_key", &R::host_key, a_line(65536)),
                      field("path", &R::path, at_most(65536)),
                      field("arguments", &R::arguments, at_most(4096)), field("only_probe", &R::only_probe),
                      field("agent_socket", &R::agent_socket, at_most(4096)));
  }
};

// The output of rsync, in parts. The last part has its exit status.
struct PullProjectReply {
  static constexpr std::string_view kind = "pull_project";

  std::string out{};
  std::optional<int> code{};  // the exit status, as in a shell
  std::string errors{};       // the end of stderr

  static constexpr auto fields() {
    using R = PullProjectReply;
    return field_list(field("out", &R::out), field("code", &R::code, in_range(0, 255)),
                      field("errors", &R::errors));
  }
};

// Compares files with their digests, and removes those that differ. "SHA256 NAME" for each file follows as
// data, terminated by NUL.
struct CompareFilesRequest {
  static constexpr std::string_view kind = "compare_files";

  std::string project;

  static constexpr auto fields() {
    return field_list(field("project", &CompareFilesRequest::project, at_most(4096)));
  }
};

struct CompareFilesReply {
  static constexpr std::string_view kind = "compare_files";

  int removed = 0;

  static constexpr auto fields() {
    return field_list(field("removed", &CompareFilesReply::removed, in_range(0, 1 << 30)));
  }
};

}  // namespace remote::wire
