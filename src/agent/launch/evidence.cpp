#include "agent/launch/evidence.hpp"

#include <utility>

#include "agent/host/run.hpp"
#include "agent/stacks/why.hpp"
#include "base/format.hpp"

namespace remote::agent {
namespace {

constexpr std::chrono::seconds evidence_limit{75};
constexpr std::size_t most_evidence = std::size_t{8} << 20U;

}  // namespace

Evidence take_evidence(const Host& host, const EvidenceTaker& taker, std::chrono::seconds between,
                       const std::vector<std::string>& ids) {
  RunRequest request{
      .argv = {"remote-agent", "why", taker.jobs_folder, taker.program, text::format("{}", between.count())},
      .program = taker.agent,
      .limit = evidence_limit,
      .max_output = most_evidence,
      .ends_group = true};
  request.argv.insert(request.argv.end(), ids.begin(), ids.end());
  RunResult result = run(host, request);
  result.out.resize(result.out.rfind('\n') + 1);
  return {.text = std::move(result.out), .all_wait = result.code == evidence_shows_waiting};
}

}  // namespace remote::agent
