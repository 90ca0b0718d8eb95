// `remote check --deep`: imports torch on the servers.

#include "project/check/deep.hpp"

#include <algorithm>
#include <atomic>

#include "servers/deep.hpp"

namespace remote::project {
namespace {

// Far more than the script's output.
constexpr std::size_t most_output = std::size_t{4} << 20U;

ImportFacts failed(const std::string& why) {
  ImportFacts facts;
  facts.error = why;
  return facts;
}

}  // namespace

void import_torch(Core& core, const NetworkOptions& options, CheckReport& report) {
  std::vector<std::size_t> places;
  RunRequest request;
  for (std::size_t i = 0; i < report.servers.size(); ++i) {
    if (report.servers[i].facts) {
      places.push_back(i);
      request.servers.push_back(report.servers[i].server);
    }
  }
  if (places.empty()) {
    return;
  }
  std::vector<std::string> outputs(places.size());
  request.command = servers::deep_command();
  request.env = {{"REMOTE_DEEP", servers::deep_program()}};
  request.on_output = [&](std::size_t server, OutputStream stream, std::string_view data) {
    if (stream == OutputStream::out && outputs[server].size() + data.size() > most_output) {
      throw Error("cannot import torch", "its output does not end",
                  "try it there by hand: python -c 'import torch'");
    }
    if (stream == OutputStream::out) {
      outputs[server] += data;
    }
  };
  std::atomic<std::size_t> done = 0;
  const auto tell = [&](std::size_t so_far) {
    if (options.on_progress) {
      options.on_progress("importing torch", so_far, places.size());
    }
  };
  tell(0);
  request.on_ended = [&](std::size_t, const ServerRun&) { tell(++done); };
  const std::vector<ServerRun> runs = run(core, request);
  for (std::size_t i = 0; i < places.size(); ++i) {
    std::optional<ImportFacts>& facts = report.servers[places[i]].facts->imported;
    try {
      if (runs[i].error) {
        throw *runs[i].error;
      }
      facts = servers::read_import(outputs[i]);
    } catch (const Error& error) {
      const bool timed_out = runs[i].status && runs[i].status->code() == 124;
      facts = failed(timed_out ? "it took longer than 300 s" : error.reason());
    }
  }
}

}  // namespace remote::project
