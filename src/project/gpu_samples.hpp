#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <remote/report.hpp>
#include <remote/top.hpp>

#include "config/config.hpp"

// GPU samples taken by `top` and `report --watch`, stored for reports in .remote/samples/SERVER, one line of
// JSON per sample: {"at":SECONDS,"gpus":[[INDEX,PERCENT,BYTES,TOTAL_BYTES,"NAME"],…]}; null for values that
// the driver does not report.

namespace remote::project {

// Stores samples. Not thread-safe, but other processes may store samples at the same time.
class GpuSamples {
 public:
  static constexpr std::chrono::seconds spacing{5};  // minimum time between stored samples
  static constexpr std::size_t most_lines = 4000;    // of more lines, only the newest half is kept
  static constexpr std::size_t most_gpus = 64;       // per server

  explicit GpuSamples(const config::Config& config);

  // Stores the sample's GPU values if a job of the project is running on the server and the last stored
  // sample is old enough. Errors are ignored, because nothing depends on the samples.
  void keep(const ServerSample& sample);

 private:
  std::filesystem::path folder_;
  std::map<std::string, Instant> last_;  // by server
};

// The stored samples of these servers in this range of time, by server and index. At most `most_points` of
// each; if there are more, every nth one. Invalid lines are skipped.
std::vector<GpuCurve> kept_samples(const config::Config& config, const std::vector<std::string>& servers,
                                   Instant from, Instant to, std::size_t most_points = 1000);

}  // namespace remote::project
