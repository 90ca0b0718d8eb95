#include "agent/host/utc_time.hpp"

#include "base/format.hpp"

namespace remote::agent {
namespace {

std::string pad_number(long long number) {
  return (number < 10 ? "0" : "") + std::to_string(number);
}

}  // namespace

std::string format_time_of_day(std::chrono::milliseconds since_epoch) {
  const auto days = std::chrono::floor<std::chrono::days>(since_epoch);
  const auto second = std::chrono::floor<std::chrono::seconds>(since_epoch - days).count();
  return text::format("{}:{}:{}", pad_number(second / 3600), pad_number(second / 60 % 60),
                      pad_number(second % 60));
}

std::string format_utc_time(std::chrono::milliseconds since_epoch) {
  const std::chrono::year_month_day date{
      std::chrono::sys_days(std::chrono::floor<std::chrono::days>(since_epoch))};
  return text::format("{}-{}-{}T{}Z", static_cast<int>(date.year()),
                      pad_number(static_cast<unsigned>(date.month())),
                      pad_number(static_cast<unsigned>(date.day())), format_time_of_day(since_epoch));
}

}  // namespace remote::agent
