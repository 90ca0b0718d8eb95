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

// Lets all devices of these servers compute and exchange data for this time, by a launch of their own,
// which is removed afterwards. `by_gpu`: a rank for each GPU, else one for each server. Throws Interrupted,
// after the ranks were ended.
// `on_progress` is told how many ranks are done.
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
  // Throws wire::Malformed.
  void take(const wire::BurnMessage& message);
};

// What is left of the ranks after all were ended and removed: `killed` and `cleaned` say how that went, for
// all of them or for those whose server answered. By server.
std::vector<BurnLeft> left_of(const std::vector<Job>& ranks, const KillResult& killed,
                              const CleanResult& cleaned);

// Computes the medians and marks what is slow, and says why it was gloo. Devices and links are in `burn`.
void judge_burn(Burn& burn);
// What that means, for each of these servers; `servers` by name.
std::vector<std::vector<Finding>> burn_findings(const Burn& burn, const std::vector<std::string>& servers);

// What the maker promises for dense matrices of a type ("bfloat16"), in 10^12 operations a second; 0: not
// known.
double promised_tflops(const std::string& device, const std::string& type);

}  // namespace remote::project
