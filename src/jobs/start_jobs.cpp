#include "jobs/start_jobs.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <set>
#include <utility>

#include <remote/error.hpp>

#include "base/strings.hpp"
#include "jobs/from_wire.hpp"
#include "jobs/keep_program.hpp"
#include "wire/cbor.hpp"

namespace remote::jobs {

wire::JobsToStart jobs_to_start(const StartOrder& order) {
  wire::JobsToStart request{.place = to_place(order.folder), .program = server_program()};
  JobSpecs specs = make_specs(order.folder, order.requests, order.lease.has_value());
  for (std::size_t i = 0; i < order.requests.size(); ++i) {
    const StartRequest& job = order.requests[i];
    wire::NewJob& entry = request.jobs.emplace_back(
        wire::NewJob{.id = job.id.text(), .backend = job.backend, .spec = std::move(specs.own[i])});
    std::ranges::transform(job.files, std::back_inserter(entry.files), [](const auto& file) {
      return wire::JobFile{file.first, file.second};
    });
  }
  request.spec = std::move(specs.common);
  request.launch = order.launch;
  request.lease = order.lease;
  return request;
}

std::vector<wire::StartedJob> ask_start(const AnyAgent& agent, const StartOrder& order) {
  const wire::Bytes bytes = wire::encode(jobs_to_start(order));
  if (bytes.size() > wire::max_start_text) {
    throw Error::usage("cannot start the jobs of a server",
                       "their commands and variables have more than 16 MB",
                       "put large values into a file of the project");
  }
  const servers::AgentQuestion question{.what = "start of " + counted(order.requests.size(), "job"),
                                        .request = wire::StartJobsRequest{},
                                        .data = {bytes.begin(), bytes.end()},
                                        .timeout = std::chrono::seconds(60),
                                        .watchful = true};
  const auto ask = [&] { return servers::take_reply<wire::StartJobsReply>(agent.ask(question)); };
  wire::StartJobsReply reply = ask();
  if (reply.is_program_missing) {
    send_program(agent, order.folder);
    reply = ask();
  }
  std::set<std::string> asked;
  for (const StartRequest& job : order.requests) {
    asked.insert(job.id.text());
  }
  std::erase_if(reply.jobs, [&](const wire::StartedJob& job) { return asked.erase(job.id) == 0; });
  return std::move(reply.jobs);
}

}  // namespace remote::jobs
