#pragma once

#include <optional>
#include <string>
#include <vector>

#include <remote/cancel.hpp>
#include <remote/instant.hpp>
#include <remote/job.hpp>

#include "config/config.hpp"
#include "servers/match.hpp"
#include "ssh/connection.hpp"
#include "wire/files.hpp"

// What a launch wrote on a server.

namespace remote::servers {

using wire::WrittenFile;  // the name is foreign, but within one of the outputs

// Collects the files of a launch as the server sends them.
class WrittenFiles {
 public:
  explicit WrittenFiles(const std::vector<std::string>& outputs) : outputs_(outputs.begin(), outputs.end()) {}

  // Throws Error for a name that is in none of the outputs, because a server may name any file, and for more
  // than 100,000 files.
  void take(std::vector<WrittenFile> files);

  std::vector<WrittenFile> files{};
  int odd = 0;  // number of skipped files: with control characters, or with an effect on what runs here

 private:
  std::vector<PathPattern> outputs_;
};

// When a launch ran, by a server's clock. to: nullopt while it runs.
struct RunTime {
  Instant from;
  std::optional<Instant> to{};
};

// The files of these outputs (files, folders, patterns) that were written since this job began and before all
// jobs of its launch on its server had ended, by name. `time` is used if the job's folder was removed there.
// Throws Error.
WrittenFiles find_written(ssh::Connection& connection, const Job& job, const std::vector<Job>& launch,
                          const std::vector<std::string>& outputs, const RunTime& time, const Cancel& cancel);

// The files without those of checkpoints that are not complete, which are added to `waiting`.
std::vector<WrittenFile> complete_files(std::vector<WrittenFile> files, const config::Checkpoint& checkpoint,
                                        std::vector<std::string>& waiting);

}  // namespace remote::servers
