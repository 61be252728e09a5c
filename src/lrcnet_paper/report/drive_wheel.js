// The reader's own car on the recorded road, steered with the arrow keys.

const STEERED = 0.05;  // curvature of a pressed key, 1/m: a bend of 20 m radius

function makeWheel(vehicle) {
  let car = null, road = null, time = 0, pressed = 0, ending = "";

  function status() {
    if (Math.abs(car.offset) > vehicle.roadWidth / 2) return "left the road";
    if (Math.abs(car.heading) > vehicle.largestHeading) return "turned away from the road";
    return car.arc >= road.x.length - 1 ? "arrived" : "";
  }

  return {
    get active() { return Boolean(car) && !ending; },
    get ending() { return ending; },
    get car() { return car; },
    get metres() { return car ? car.arc : 0; },
    get place() { return car ? placeOnMap(road, car) : null; },

    // Begin where a drive is at a step, or at the start of the road if that drive has ended.
    start(onRoad, drive, step) {
      road = onRoad;
      time = 0;
      pressed = 0;
      ending = "";
      const from = step < drive.action.length ? carOf(drive, step) : carOf(drive, 0);
      const begin = step < drive.action.length ? step : 0;
      const k = from ? nearestPoint(road, from) : 0;
      const heading = from ? from.direction - road.direction[k] : 0;
      const steering = begin ? Math.atan(vehicle.wheelbase * drive.action[begin - 1]) : 0;
      car = { arc: k, offset: drive.offset[begin] ?? 0, heading: Math.atan2(Math.sin(heading), Math.cos(heading)), steering };
      return begin;
    },

    stop() { car = null; ending = ""; },

    // Turn to the left (1) or to the right (-1); 0 lets go.
    steer(direction) { pressed = direction; },

    // Drive on for some seconds, in steps of 1/30 s.
    drive(seconds) {
      time += seconds;
      while (time >= vehicle.step && !ending) {
        time -= vehicle.step;
        car = advanceCar(vehicle, road, car, STEERED * pressed);
        const now = status();
        if (now) ending = `${now} after ${car.arc.toFixed(0)} m`;
      }
    },
  };
}
