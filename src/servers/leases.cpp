#include "servers/leases.hpp"

#include <algorithm>
#include <cstdint>

#include "servers/python_env.hpp"

namespace remote::servers {

AgentQuestion leases_question(const std::optional<wire::LeaseTerms>& terms) {
  return {.what = "leases",
          .request = wire::LeasesRequest{terms},
          .timeout = std::chrono::seconds(30),
          .watchful = true};
}

wire::LeaseTerms to_terms(const LeaseRequest& lease, const std::vector<int>& among) {
  return {.gpus = std::max(lease.gpus, 0),
          .cpus = std::max(lease.cpus, 0),
          .memory = std::min<std::uint64_t>(lease.memory, wire::max_leased_memory),
          .among = among};
}

wire::LeaseTerms to_terms(const LeaseRequest& lease, const config::Config& config,
                          const config::Server& server) {
  wire::LeaseTerms terms = to_terms(lease, server.gpu_indices);
  terms.prologue = inline_files(prologue(config, server));
  return terms;
}

}  // namespace remote::servers
