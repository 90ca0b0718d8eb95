#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <remote/check.hpp>

#include "project/core.hpp"
#include "wire/burn.hpp"

namespace remote::project {

// Makes all devices of these servers compute and exchange data for this long, as a separate launch that is
// removed afterward. `by_gpu`: one rank per GPU, otherwise one per server. Throws Interrupted after stopping
// the ranks. `on_progress` gets the number of finished ranks.
Burn burn(Core& core, const std::vector<std::string>& servers, std::chrono::seconds time, bool by_gpu,
          const std::function<void(const std::string&, std::size_t, std::size_t)>& on_progress = {});

// The messages of one rank; used by burn() and tests.
struct BurnAnswer {
  int ranks = 1;
  std::optional<BurnDevice> device{};
  std::vector<BurnLink> links{};
  std::string backend{};
  std::string lacks{};  // see BurnDevice
  std::string error{};
  // Adds a message. Throws wire::Malformed.
  void take(const wire::BurnMessage& message);
};

// What remains of the ranks after all were stopped and removed. `killed` and `cleaned`: the results of that,
// for all ranks or for those whose server answered. By server.
std::vector<BurnLeft> left_of(const std::vector<Job>& ranks, const KillResult& killed,
                              const CleanResult& cleaned);

// Computes the medians, marks slow devices and links, and sets the reason for gloo. `burn` has the devices
// and links.
void judge_burn(Burn& burn);
// The findings for each of these servers; `servers`: names.
std::vector<std::vector<Finding>> burn_findings(const Burn& burn, const std::vector<std::string>& servers);

// The vendor's figure for dense matrices of a type ("bfloat16"), in 10^12 operations per second; 0: unknown.
double promised_tflops(const std::string& device, const std::string& type);

}  // namespace remote::project
