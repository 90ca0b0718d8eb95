// The names of the enums of gpu.hpp.

#include <array>
#include <string>

#include <remote/gpu.hpp>

namespace remote {

namespace {

struct LimitName {
  ClockLimit limit;
  const char* name;
};
// In the order of the bits in nvml.h (nvmlClocksEventReasons).
constexpr std::array limit_names = {LimitName{ClockLimit::idle, "gpu_idle"},
                                    LimitName{ClockLimit::application_setting, "applications_clocks_setting"},
                                    LimitName{ClockLimit::power_cap, "sw_power_cap"},
                                    LimitName{ClockLimit::hardware_slowdown, "hw_slowdown"},
                                    LimitName{ClockLimit::sync_boost, "sync_boost"},
                                    LimitName{ClockLimit::software_thermal, "sw_thermal_slowdown"},
                                    LimitName{ClockLimit::hardware_thermal, "hw_thermal_slowdown"},
                                    LimitName{ClockLimit::hardware_power_brake, "hw_power_brake_slowdown"},
                                    LimitName{ClockLimit::display_setting, "display_clocks_setting"}};

}  // namespace

std::string name_of(ClockLimit limit) {
  for (const LimitName& entry : limit_names) {
    if (entry.limit == limit) {
      return entry.name;
    }
  }
  return "other";
}

bool is_fault(ClockLimit limit) {
  return limit == ClockLimit::hardware_slowdown || limit == ClockLimit::software_thermal ||
         limit == ClockLimit::hardware_thermal || limit == ClockLimit::hardware_power_brake;
}

std::string name_of(GpuToolState state) {
  // In the order of the states.
  constexpr std::array names{"answered",         "no devices",  "no driver",
                             "version mismatch", "lost device", "no permission",
                             "no access",        "hangs",       "failed"};
  return names.at(static_cast<std::size_t>(state));
}

}  // namespace remote
