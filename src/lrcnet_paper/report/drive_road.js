// The road as a driver sees it, and the equations of the car; the same as in driving/camera.py and driving/vehicle.py.
// The map's x points right and y down, as on a screen; directions are counter-clockwise, in radians; left is positive.

function clamp(value, low, high) {
  return Math.max(low, Math.min(high, value));
}

// Interpolate a table with one entry per metre.
function lookUp(table, arc) {
  const low = clamp(Math.floor(arc), 0, table.length - 2), share = clamp(arc - low, 0, 1);
  return table[low] + (table[low + 1] - table[low]) * share;
}

function nearestPoint(road, car) {
  let best = 0, least = Infinity;
  for (let k = 0; k < road.x.length; k++) {
    const distance = (road.x[k] - car.x) ** 2 + (road.y[k] - car.y) ** 2;
    if (distance < least) { least = distance; best = k; }
  }
  return best;
}

// The point of the map at some distance to the left of the k-th point of the road.
function pointBeside(road, k, left) {
  return [road.x[k] - left * Math.sin(road.direction[k]), road.y[k] - left * Math.cos(road.direction[k])];
}

// Column and row at which the camera of a car sees a point of the map; null if it is too near or behind.
function project(camera, car, [x, y]) {
  const cos = Math.cos(car.direction), sin = Math.sin(car.direction);
  const across = x - (car.x + camera.ahead * cos), up = car.y - camera.ahead * sin - y;
  const ahead = cos * across + sin * up, left = cos * up - sin * across;
  if (ahead < (camera.focal * camera.height) / (camera.rows - camera.horizon)) return null;
  return [camera.columns / 2 - (camera.focal * left) / ahead, camera.horizon + (camera.focal * camera.height) / ahead];
}

// The line at some distance to the left of the road's centre, from the car onwards, in columns and rows.
function projectLine(camera, road, car, left, metres = 90) {
  const start = nearestPoint(road, car), points = [];
  for (let k = start; k < Math.min(start + metres, road.x.length); k++) {
    const point = project(camera, car, pointBeside(road, k, left));
    if (point) points.push(point);
  }
  return points;
}

// One step of the car by the midpoint rule; see `advance` in driving/vehicle.py.
function advanceCar(vehicle, road, car, action) {
  const desired = clamp(Math.atan(action * vehicle.wheelbase), -vehicle.largestSteering, vehicle.largestSteering);
  const most = vehicle.steeringRate * vehicle.step;
  const change = clamp(desired - car.steering, -most, most), speed = lookUp(road.speed, car.arc);
  const slopes = (state) => {
    const bend = lookUp(road.curvature, state.arc);
    const along = (speed * Math.cos(state.heading)) / (1 - bend * state.offset);
    const turn = (speed * Math.tan(state.steering)) / vehicle.wheelbase;
    return [along, speed * Math.sin(state.heading), turn - bend * along];
  };
  const move = ([arc, offset, heading], share) => ({
    arc: car.arc + share * vehicle.step * arc,
    offset: car.offset + share * vehicle.step * offset,
    heading: car.heading + share * vehicle.step * heading,
    steering: car.steering + share * change,
  });
  return move(slopes(move(slopes(car), 0.5)), 1);
}

// Position and direction on the map of a car in road coordinates.
function placeOnMap(road, car) {
  const direction = lookUp(road.direction, car.arc);
  return {
    x: lookUp(road.x, car.arc) - car.offset * Math.sin(direction),
    y: lookUp(road.y, car.arc) - car.offset * Math.cos(direction),
    direction: direction + car.heading,
  };
}
