#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <remote/report.hpp>
#include <remote/top.hpp>

#include "config/config.hpp"

// What GPUs did while somebody looked (`top`, `report --watch`), for reports: .remote/samples/SERVER, a line
// of JSON a look, {"at":SECONDS,"gpus":[[INDEX,PERCENT,BYTES,BYTES_IN_ALL,"NAME"],…]}; null where the driver
// does not tell.

namespace remote::project {

// Keeps samples. One thread; other processes may do so at the same time.
class GpuSamples {
 public:
  static constexpr std::chrono::seconds spacing{5};  // of what is kept
  static constexpr std::size_t most_lines = 4000;    // more are cut down to half, the newest
  static constexpr std::size_t most_gpus = 64;       // of one server

  explicit GpuSamples(const config::Config& config);

  // Keeps what it tells of GPUs, where a job of the project runs on the server and the last one that was kept
  // is old enough. What cannot be written is not kept: nothing depends on it.
  void keep(const ServerSample& sample);

 private:
  std::filesystem::path folder_;
  std::map<std::string, Instant> last_;  // by server
};

// What was kept of these servers from one second to another, by server and index. At most `most_points` of
// each: of more, every so many-th. What is no such line is passed by.
std::vector<GpuCurve> kept_samples(const config::Config& config, const std::vector<std::string>& servers,
                                   Instant from, Instant to, std::size_t most_points = 1000);

}  // namespace remote::project
