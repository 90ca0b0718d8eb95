#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <remote/cancel.hpp>
#include <remote/job.hpp>

#include "config/config.hpp"
#include "servers/answer.hpp"
#include "servers/match.hpp"
#include "ssh/connection.hpp"

// What a launch wrote on a server.

namespace remote::servers {

struct WrittenFile {
  std::string name;        // in the project's folder; foreign, but within one of the outputs
  std::int64_t mtime = 0;  // seconds since the epoch, by the server's clock
  std::uint64_t size = 0;
};

// What results.sh answers: see docs/protocol.md. A server may name anything: a name that is in none of the
// outputs is an Error, and so are more than 100,000.
struct WrittenAnswer {
  std::vector<PathPattern> outputs;
  std::vector<WrittenFile> files = {};
  int odd = 0;        // how many were left out: with control characters, or what decides what runs here
  bool gone = false;  // the job's folder, by which it is known when the launch began
  void take(AnswerLine& line);
};

// The files of these outputs (files, folders, patterns) that were written since this job began and before all
// jobs of its launch on its server had ended, by name. Throws Error.
WrittenAnswer written_by(ssh::Connection& connection, const Job& job, const std::vector<Job>& launch,
                         const std::vector<std::string>& outputs, const Cancel& cancel);

// The files without those of checkpoints that are not complete, which are added to `waiting`.
std::vector<WrittenFile> complete_files(std::vector<WrittenFile> files, const config::Checkpoint& checkpoint,
                                        std::vector<std::string>& waiting);

}  // namespace remote::servers
