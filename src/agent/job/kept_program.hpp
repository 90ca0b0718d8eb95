#pragma once

#include "agent/host/host.hpp"
#include "agent/job/record.hpp"
#include "wire/start.hpp"

// Jobs run from a copy of the server program in JOBS_FOLDER/.bin/DIGEST. It contains the program's files
// (lib, python), the agent as `remote-agent`, and `used`, whose modification time is the last start. Each
// build of the client has its own copy, which is not changed later. Copies remain after the client
// disconnects and are visible to all nodes of a cluster. A digest in the name is not a proof, so copies must
// be owned and writable by this user only.

namespace remote::agent {

class KeptProgram {
 public:
  // Creates the project's folder and .bin. Throws std::runtime_error if this fails, or if other users could
  // change the contents of .bin.
  KeptProgram(const Host& host, JobsFolder folder, wire::ServerProgram program);

  const Path& path() const { return path_; }
  // Returns whether the copy is complete and writable by this user only.
  bool is_complete() const;
  // Creates the copy from an archive. Throws std::runtime_error.
  void unpack(const std::string& archive) const;
  // Adds the agent if it is missing, and updates the time of last use. Throws std::runtime_error.
  void add_agent() const;

 private:
  void remove_unused() const;

  const Host& host_;
  JobsFolder folder_;
  wire::ServerProgram program_;
  Path bin_;
  Path path_;
};

// Returns the folder of the copy with this digest; "" if it is missing or another user could have written to
// it.
Path find_kept_program(const JobsFolder& folder, const std::string& digest);

// Returns the agent of a copy: this process's own executable if it is the same program, because the copy may
// be on a noexec file system. "" if it is missing, cannot be executed, or another user could have written to
// it.
Path find_kept_agent(const Host& host, const Path& program);

}  // namespace remote::agent
