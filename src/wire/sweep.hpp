#pragma once

#include <string>
#include <variant>
#include <vector>

#include "wire/fields.hpp"

// The messages between the servers of a sweep, and the entries of their journals. A point is identified by
// the id of its job.

namespace remote::wire {

constexpr std::size_t max_point_id = 64;
constexpr std::size_t max_points_in_message = 100;

// From a server: points that started there.
struct KnownPoints {
  static constexpr std::string_view kind = "known";
  std::vector<std::string> points;
  static constexpr auto fields() {
    return field_list(field("points", &KnownPoints::points, at_most(max_points_in_message)));
  }
  friend bool operator==(const KnownPoints&, const KnownPoints&) = default;
};
// From a server: points that have ended there.
struct EndedPoints {
  static constexpr std::string_view kind = "ended";
  std::vector<std::string> points;
  static constexpr auto fields() {
    return field_list(field("points", &EndedPoints::points, at_most(max_points_in_message)));
  }
  friend bool operator==(const EndedPoints&, const EndedPoints&) = default;
};
// From a server: it has reported everything it knows.
struct ReportDone {
  static constexpr std::string_view kind = "ready";
  static constexpr auto fields() { return field_list(); }
  friend bool operator==(const ReportDone&, const ReportDone&) = default;
};
// From a server: it could run a point.
struct WantPoint {
  static constexpr std::string_view kind = "want";
  static constexpr auto fields() { return field_list(); }
  friend bool operator==(const WantPoint&, const WantPoint&) = default;
};
// From a server: a point never started there, and never will.
struct ReturnPoint {
  static constexpr std::string_view kind = "back";
  std::string point;
  static constexpr auto fields() {
    return field_list(field("point", &ReturnPoint::point, at_most(max_point_id)));
  }
  friend bool operator==(const ReturnPoint&, const ReturnPoint&) = default;
};
// From the giver.
struct GivePoint {
  static constexpr std::string_view kind = "give";
  std::string point;
  static constexpr auto fields() {
    return field_list(field("point", &GivePoint::point, at_most(max_point_id)));
  }
  friend bool operator==(const GivePoint&, const GivePoint&) = default;
};
// From the giver: no point is available now.
struct NoPoint {
  static constexpr std::string_view kind = "none";
  static constexpr auto fields() { return field_list(); }
  friend bool operator==(const NoPoint&, const NoPoint&) = default;
};
// From the giver: no more points follow.
struct SweepOver {
  static constexpr std::string_view kind = "over";
  static constexpr auto fields() { return field_list(); }
  friend bool operator==(const SweepOver&, const SweepOver&) = default;
};
using SweepMessage =
    std::variant<KnownPoints, EndedPoints, ReportDone, WantPoint, ReturnPoint, GivePoint, NoPoint, SweepOver>;

// The giver's journal entries.
struct PointGiven {
  static constexpr std::string_view kind = "given";
  std::string point;
  std::string server;
  static constexpr auto fields() {
    return field_list(field("point", &PointGiven::point, at_most(max_point_id)),
                      field("server", &PointGiven::server, at_most(256)));
  }
  friend bool operator==(const PointGiven&, const PointGiven&) = default;
};
struct PointReturned {
  static constexpr std::string_view kind = "returned";
  std::string point;
  static constexpr auto fields() {
    return field_list(field("point", &PointReturned::point, at_most(max_point_id)));
  }
  friend bool operator==(const PointReturned&, const PointReturned&) = default;
};
// The taker's journal entries.
struct PointBegun {
  static constexpr std::string_view kind = "begun";
  std::string point;
  static constexpr auto fields() {
    return field_list(field("point", &PointBegun::point, at_most(max_point_id)));
  }
  friend bool operator==(const PointBegun&, const PointBegun&) = default;
};
struct PointNotStarted {
  static constexpr std::string_view kind = "not_started";
  std::string point;
  static constexpr auto fields() {
    return field_list(field("point", &PointNotStarted::point, at_most(max_point_id)));
  }
  friend bool operator==(const PointNotStarted&, const PointNotStarted&) = default;
};
using SweepEntry = std::variant<PointGiven, PointReturned, PointBegun, PointNotStarted>;

}  // namespace remote::wire
