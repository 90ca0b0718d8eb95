#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include <remote/top.hpp>

#include "servers/action.hpp"
#include "servers/gpus.hpp"

// What src/server/top.sh tells of a server, with its GPUs.

namespace remote::servers {

// A script that is answered with the lines of a LoadAnswer comes behind the folder of the project, as
// remote_path_word() takes it: top_host and tell_gpus.
void add_load(Script& script);

class LoadAnswer {
 public:
  // Whether a line of this kind is one of these.
  static bool takes(std::string_view kind);
  void take(AnswerLine& line);
  // Throws Error when the server did not tell its load.
  void check() const;

  // `cpu` is what was busy since the earlier answer, where there is one.
  ServerLoad load(const std::optional<LoadAnswer>& earlier) const;
  GpuFacts gpus() const { return gpus_.facts(); }

 private:
  ServerLoad load_{};
  std::uint64_t busy_ = 0;  // ticks since the server was started
  std::uint64_t all_ = 0;
  bool seen_ = false;
  GpuAnswer gpus_;
};

// The server alone, without jobs.
Action<LoadAnswer> load_action(std::string_view project);

}  // namespace remote::servers
