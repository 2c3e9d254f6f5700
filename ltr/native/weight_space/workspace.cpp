#include "workspace.h"

namespace ltr::weight_space {
namespace {

std::size_t pad(std::size_t columns) { return (columns + 7) / 8 * 8; }

}  // namespace

Workspace::Workspace(const Space& space, std::size_t depth)
    : boxes(depth),
      lists(depth),
      columns_(space.columns()),
      pairs_(space.pairs.size),
      conflicts_(space.conflicts.size),
      low_(depth * pad(columns_)),
      high_(depth * pad(columns_)),
      point_(depth * pad(columns_)),
      moved_low_(depth * pad(columns_)),
      moved_high_(depth * pad(columns_)),
      used_(depth * columns_),
      counts_(depth * space.tables.members()),
      fewer_(depth * space.tables.counts_size),
      losable_(depth * space.tables.members()),
      room_(depth * (space.tables.objectives() - 1)),
      upper(12 * pairs_ + 100'000),
      lower(upper.size()),
      open(upper.size()),
      pair_columns((5 * pairs_ + 1024) * columns_),
      slack(5 * pairs_ + 1024),
      pair_single((5 * pairs_ + 1024) * space.single_size()),
      member(5 * pairs_ + 1024),
      run(member.size() + depth),
      conflict_columns((5 * conflicts_ + 1024) * columns_),
      apart(5 * conflicts_ + 1024),
      one(apart.size()),
      other(apart.size()),
      scale(8 * (pairs_ / 8 + 3)),
      value(scale.size()),
      changed(scale.size()),
      changed_too(scale.size()),
      gather(scale.size()),
      place(scale.size()),
      listed(conflicts_ + 16),
      in_conflict(8 * (conflicts_ / 8 + 3)),
      unit_loss(space.tables.members()),
      forced(space.tables.members()),
      budget(space.tables.members()),
      touched(space.tables.members()),
      path(longest_path(space)),
      inverse(longest_path(space)),
      reach(longest_path(space)),
      trial_counts(space.tables.members()),
      trial_fewer(space.tables.counts_size),
      moves(columns_),
      required(space.tables.objectives()),
      needed(space.tables.objectives()),
      packed(space.tables.objectives()),
      segment(space.tables.objectives() + 1),
      x(pad(columns_)),
      g(pad(columns_)),
      mixed(pad(columns_)),
      least(columns_),
      largest(columns_),
      best(pad(columns_)),
      score(columns_),
      middle(columns_),
      half_width(columns_),
      ceiling(scale.size()),
      ceiling_quarter(scale.size()),
      half(space.single_size()),
      loss(space.tables.objectives() * 4 * space.single_size()),
      moved(moved_rows(space) * 4 * space.single_size()),
      change(4 * space.single_size()) {
  for (std::size_t t = 0; t < depth; ++t) {
    boxes[t].low = low_.data() + t * pad(columns_);
    boxes[t].high = high_.data() + t * pad(columns_);
    boxes[t].point = point_.data() + t * pad(columns_);
    boxes[t].moved_low = moved_low_.data() + t * pad(columns_);
    boxes[t].moved_high = moved_high_.data() + t * pad(columns_);
    boxes[t].used = used_.data() + t * columns_;
    boxes[t].counts = counts_.data() + t * unit_loss.size();
    boxes[t].fewer = fewer_.data() + t * trial_fewer.size();
    boxes[t].losable = losable_.data() + t * unit_loss.size();
    boxes[t].room = room_.data() + t * (required.size() - 1);
  }
  for (const Buffer<double>* vectors : {&low_, &high_, &point_, &x, &g, &mixed, &best}) vectors->fill(0.0);
  for (std::size_t x = 1; x < path.size(); ++x) inverse[x] = 1.0 / static_cast<double>(x);
  in_conflict.fill(0);
  half.fill(0.0f);
  moved.fill(0);
}

}  // namespace ltr::weight_space
